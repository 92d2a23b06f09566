// From token vectors to one vector a text: one block a text, its tokens dealt out to the warps.
#pragma once

#include "norm.cuh"

constexpr int POOL_WARPS = 8;

// Numbered as in src/cuda/launch.rs.
enum Pooling { MEAN = 0, CLS = 1, MAX = 2 };

__device__ inline float combined(float a, float b, int mode) {
    return mode == MAX ? fmaxf(a, b) : a + b;
}

// Every `POOL_WARPS`th token of a text, beginning with the warp's own, into `part`.
template <typename T>
__device__ void pool_some(const T* rows, unsigned begin, unsigned end, int mode, int hidden, float* part) {
    const float nothing = mode == MAX ? -INFINITY : 0.0f;
    Two sum[MAX_PAIRS];
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) sum[i] = {nothing, nothing};
    for (unsigned token = begin + warp_index(); token < end; token += POOL_WARPS) {
        const T* row = rows + static_cast<size_t>(token) * hidden;
#pragma unroll
        for (int i = 0; i < MAX_PAIRS; ++i) {
            const int pair = i * WARP + lane_index();
            if (pair < hidden / 2) {
                const Two two = load(row, pair);
                sum[i] = {combined(sum[i].x, two.x, mode), combined(sum[i].y, two.y, mode)};
            }
        }
    }
#pragma unroll
    for (int i = 0; i < MAX_PAIRS; ++i) {
        const int pair = i * WARP + lane_index();
        if (pair < hidden / 2) store(part, pair, sum[i]);
    }
}

// The sum of `value` over the block.
__device__ inline float sum_of_block(float value) {
    __shared__ float sums[POOL_WARPS];
    value = sum_of_lanes(value);
    if (lane_index() == 0) sums[warp_index()] = value;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < POOL_WARPS; ++warp) total += sums[warp];
    return total;
}

// out[text], `hidden` floats a text; scaled to length 1 when `unit` is not 0. A vector of zeros stays one.
template <typename T>
__device__ void pool(const T* rows, const unsigned* bounds, int mode, int unit, int hidden, float* out) {
    __shared__ float parts[POOL_WARPS][2 * MAX_PAIRS * WARP];
    const unsigned begin = bounds[blockIdx.x];
    const unsigned end = mode == CLS ? begin + 1 : bounds[blockIdx.x + 1];
    pool_some(rows, begin, end, mode, hidden, parts[warp_index()]);
    __syncthreads();
    float squares = 0.0f;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        float value = parts[0][i];
        for (int warp = 1; warp < POOL_WARPS; ++warp) value = combined(value, parts[warp][i], mode);
        if (mode == MEAN) value /= static_cast<float>(end - begin);
        squares += value * value;
        // Only this thread reads it again.
        parts[0][i] = value;
    }
    const float scale = unit ? 1.0f / fmaxf(sqrtf(sum_of_block(squares)), 1e-12f) : 1.0f;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) {
        out[static_cast<size_t>(blockIdx.x) * hidden + i] = parts[0][i] * scale;
    }
}
