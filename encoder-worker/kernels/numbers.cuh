// How numbers are kept in memory, as float or bf16, and read and written two at a time. All arithmetic
// is in float. Needs no CUDA header, so that the host test can compile it too.
#pragma once

struct bf16 {
    unsigned short bits;
};

struct Two {
    float x, y;
};

__device__ inline float float_of_bits(unsigned bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

__device__ inline unsigned bits_of_float(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The two halves of a register that holds two bf16, the first one in the low half.
__device__ inline Two unpack(unsigned both) {
    return {float_of_bits(both << 16), float_of_bits(both & 0xffff0000u)};
}

#ifdef TOOLGATE_ON_HOST
__device__ inline unsigned rounded(float value) {
    const unsigned bits = bits_of_float(value);
    if (value != value) return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__device__ inline unsigned pack(Two two) {
    return rounded(two.x) | (rounded(two.y) << 16);
}
#else
__device__ inline unsigned pack(Two two) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(two.y), "f"(two.x));
    return both;
}
#endif

// `pair` counts from `row` in steps of two numbers; rows have even widths, so pairs are aligned.
__device__ inline Two load(const bf16* row, int pair) {
    return unpack(reinterpret_cast<const unsigned*>(row)[pair]);
}

__device__ inline Two load(const float* row, int pair) {
    return reinterpret_cast<const Two*>(row)[pair];
}

__device__ inline void store(bf16* row, int pair, Two two) {
    reinterpret_cast<unsigned*>(row)[pair] = pack(two);
}

__device__ inline void store(float* row, int pair, Two two) {
    reinterpret_cast<Two*>(row)[pair] = two;
}

__device__ inline Two operator+(Two a, Two b) {
    return {a.x + b.x, a.y + b.y};
}
