// Bias and activation of the feed-forward layer, in place: one block a token.
#pragma once

#include "numbers.cuh"

// Numbered as in src/cuda/launch.rs.
enum Activation { GELU = 0, GELU_TANH = 1, RELU = 2 };

__device__ inline float activated(float x, int kind) {
    if (kind == RELU) return fmaxf(x, 0.0f);
    if (kind == GELU_TANH) {
        return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    }
    return 0.5f * x * (1.0f + erff(x * 0.7071067812f));
}

// rows[token] = activation(rows[token] + bias), `width` numbers a row.
template <typename T> __device__ void activate(T* rows, const float* bias, int width, int kind) {
    T* row = rows + static_cast<size_t>(blockIdx.x) * width;
    for (int pair = threadIdx.x; pair < width / 2; pair += blockDim.x) {
        const Two sum = load(row, pair) + load(bias, pair);
        store(row, pair, {activated(sum.x, kind), activated(sum.y, kind)});
    }
}
