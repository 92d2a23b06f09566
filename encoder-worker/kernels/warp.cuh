// What the 32 threads of a warp do together.
#pragma once

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ inline int lane_index() {
    return static_cast<int>(threadIdx.x) % WARP;
}

__device__ inline int warp_index() {
    return static_cast<int>(threadIdx.x) / WARP;
}

// The sum over the lanes whose indices differ in the bits below `lanes`; all of them get it.
template <int lanes = WARP> __device__ inline float sum_of_lanes(float value) {
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// As above, the largest.
template <int lanes = WARP> __device__ inline float max_of_lanes(float value) {
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, step));
    return value;
}
