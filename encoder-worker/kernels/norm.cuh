// What ends in a layer norm: one warp a token, the token's numbers in registers.
#pragma once

#include "numbers.cuh"
#include "warp.cuh"

constexpr int NORM_WARPS = 4;
// Pairs of numbers a lane holds: hidden sizes up to 1024.
constexpr int MAX_PAIRS = 16;

// `row[i]` is pair `i * 32 + lane` of `pairs`; the others must be 0.
template <typename T>
__device__ void normalise(Two (&row)[MAX_PAIRS], const float* gamma, const float* beta, float epsilon,
                          int pairs, T* out) {
    const int lane = lane_index();
    const float width = 2.0f * static_cast<float>(pairs);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) sum += row[i].x + row[i].y;
    const float mean = sum_of_lanes(sum) / width;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) {
        if (i * WARP + lane < pairs) {
            row[i] = {row[i].x - mean, row[i].y - mean};
            squares += row[i].x * row[i].x + row[i].y * row[i].y;
        }
    }
    const float scale = 1.0f / sqrtf(sum_of_lanes(squares) / width + epsilon);
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) {
        const int pair = i * WARP + lane;
        if (pair < pairs) {
            const Two g = load(gamma, pair), b = load(beta, pair);
            store(out, pair, {row[i].x * scale * g.x + b.x, row[i].y * scale * g.y + b.y});
        }
    }
}

// out[token] = norm(words[ids[token]] + places[positions[token]]); `norm` is gamma, then beta.
template <typename T>
__device__ void embed(const unsigned* ids, const unsigned* positions, const T* words, const T* places,
                      const float* norm, float epsilon, int tokens, int hidden, T* out) {
    const int token = static_cast<int>(blockIdx.x) * NORM_WARPS + warp_index();
    if (token >= tokens) return;
    const T* word = words + static_cast<size_t>(ids[token]) * hidden;
    const T* place = places + static_cast<size_t>(positions[token]) * hidden;
    Two row[MAX_PAIRS];
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) {
        const int pair = i * WARP + lane_index();
        row[i] = pair < hidden / 2 ? load(word, pair) + load(place, pair) : Two{0.0f, 0.0f};
    }
    normalise(row, norm, norm + hidden, epsilon, hidden / 2, out + static_cast<size_t>(token) * hidden);
}

// rows[token] = norm(rows[token] + bias + residual[token]); `bias_norm` is bias, gamma, beta.
template <typename T>
__device__ void add_norm(T* rows, const T* residual, const float* bias_norm, float epsilon, int tokens,
                         int hidden) {
    const int token = static_cast<int>(blockIdx.x) * NORM_WARPS + warp_index();
    if (token >= tokens) return;
    T* into = rows + static_cast<size_t>(token) * hidden;
    const T* add = residual + static_cast<size_t>(token) * hidden;
    Two row[MAX_PAIRS];
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) {
        const int pair = i * WARP + lane_index();
        row[i] = pair < hidden / 2 ? load(into, pair) + load(add, pair) + load(bias_norm, pair)
                                   : Two{0.0f, 0.0f};
    }
    normalise(row, bias_norm + hidden, bias_norm + 2 * hidden, epsilon, hidden / 2, into);
}
