// The tensor cores' product of bf16 matrices, and nothing else.
#pragma once

#include "warp.cuh"

// result (16 x 8) += left (16 x 16) * right (16 x 8), spread over the warp as mma.m16n8k16 has it.
#ifdef TOOLGATE_ON_HOST
void multiply_add(float (&result)[4], const unsigned (&left)[4], unsigned right0, unsigned right1);
#else
__device__ inline void multiply_add(float (&result)[4], const unsigned (&left)[4], unsigned right0,
                                    unsigned right1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(result[0]), "+f"(result[1]), "+f"(result[2]), "+f"(result[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}
#endif
