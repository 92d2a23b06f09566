// The kernels of the encoder's forward pass, in bf16 and in float. bert.ptx is compiled from this by
// ../cuda/ptx.sh; src/cuda/kernels.rs has their names, src/cuda/launch.rs their arguments.

#include "activation.cuh"
#include "attention_bf16.cuh"
#include "attention_f32.cuh"
#include "norm.cuh"
#include "pool.cuh"

#define ATTENTION_KERNEL(T, NAME, SIZE)                                                                      \
    extern "C" __global__ void __launch_bounds__(ATTENTION_WARPS* WARP) attention_##SIZE##_##NAME(           \
        const T* product, const float* bias, const Tile* tiles, int hidden, T* out) {                        \
        attend<SIZE>(product, bias, tiles, hidden, out);                                                     \
    }

#define BERT_KERNELS(T, NAME)                                                                                \
    extern "C" __global__ void __launch_bounds__(NORM_WARPS* WARP)                                           \
        embed_##NAME(const unsigned* ids, const unsigned* positions, const T* words, const T* places,        \
                     const float* norm, float epsilon, int tokens, int hidden, T* out) {                     \
        embed(ids, positions, words, places, norm, epsilon, tokens, hidden, out);                            \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(NORM_WARPS* WARP)                                           \
        add_norm_##NAME(T* rows, const T* residual, const float* bias_norm, float epsilon, int tokens,       \
                        int hidden) {                                                                        \
        add_norm(rows, residual, bias_norm, epsilon, tokens, hidden);                                        \
    }                                                                                                        \
    extern "C" __global__ void activate_##NAME(T* rows, const float* bias, int width, int kind) {            \
        activate(rows, bias, width, kind);                                                                   \
    }                                                                                                        \
    extern "C" __global__ void __launch_bounds__(POOL_WARPS* WARP) pool_##NAME(                              \
        const T* rows, const unsigned* bounds, int mode, int unit, int hidden, float* out) {                 \
        pool(rows, bounds, mode, unit, hidden, out);                                                         \
    }                                                                                                        \
    ATTENTION_KERNEL(T, NAME, 32)                                                                            \
    ATTENTION_KERNEL(T, NAME, 64)

BERT_KERNELS(bf16, bf16)
BERT_KERNELS(float, f32)
