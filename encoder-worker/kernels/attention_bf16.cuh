// Attention in bf16 on the tensor cores: one warp 16 queries, keys and values in shared memory 64 at a
// time, softmax carried along from one 64 to the next.
//
// In registers, `row` is lane / 4 and `pair` is lane % 4. Of a 16 x 8 result a lane holds columns
// 2 * pair and the next of rows `row` and `row + 8`; that is also how the next product wants its left
// side, so the weights go from one product to the other without moving between lanes.
#pragma once

#include "attention.cuh"
#include "mma.cuh"

constexpr int TILE_KEYS = 64;
constexpr int KEY_GROUPS = TILE_KEYS / 8;

// Keys and values of one tile, two numbers a word; the padding spreads rows over the memory's banks.
template <int SIZE> struct SharedTile {
    unsigned keys[TILE_KEYS][SIZE / 2 + 4];
    unsigned values[TILE_KEYS][SIZE / 2 + 4];
};

// What a warp has of its 16 queries so far. Index 0 is row `row`, 1 is `row + 8`.
template <int SIZE> struct Running {
    float largest[2] = {-INFINITY, -INFINITY};
    float total[2] = {0.0f, 0.0f};
    float sum[SIZE / 8][4] = {};
};

template <int SIZE>
__device__ void load_tile(const HeadView<bf16>& head, unsigned first, unsigned end, SharedTile<SIZE>& tile) {
    for (int i = threadIdx.x; i < TILE_KEYS * SIZE / 2; i += blockDim.x) {
        const int key = i / (SIZE / 2), pair = i % (SIZE / 2);
        const bool used = first + key < end;
        tile.keys[key][pair] = used ? pack(head.get(KEY, first + key, pair)) : 0u;
        tile.values[key][pair] = used ? pack(head.get(VALUE, first + key, pair)) : 0u;
    }
}

// The left side of the score product: 16 queries from `first`, zeros past `end`.
template <int SIZE>
__device__ void load_queries(const HeadView<bf16>& head, unsigned first, unsigned end,
                             unsigned (&queries)[SIZE / 16][4]) {
    const int row = lane_index() / 4, pair = lane_index() % 4;
#pragma unroll
    for (int step = 0; step < SIZE / 16; ++step) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned query = first + row + (i % 2) * 8;
            const int at = step * 8 + pair + (i / 2) * 4;
            queries[step][i] = query < end ? pack(head.get(QUERY, query, at)) : 0u;
        }
    }
}

// Scores of 16 queries with the tile's keys; minus infinity where a key is past the text's `left`.
template <int SIZE>
__device__ void score(const unsigned (&queries)[SIZE / 16][4], const SharedTile<SIZE>& tile, int left,
                      float (&scores)[KEY_GROUPS][4]) {
    const int row = lane_index() / 4, pair = lane_index() % 4;
#pragma unroll
    for (int group = 0; group < KEY_GROUPS; ++group) {
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[group][i] = 0.0f;
        const unsigned* key = tile.keys[group * 8 + row];
#pragma unroll
        for (int step = 0; step < SIZE / 16; ++step) {
            multiply_add(scores[group], queries[step], key[step * 8 + pair], key[step * 8 + pair + 4]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (group * 8 + pair * 2 + i % 2 >= left) scores[group][i] = -INFINITY;
        }
    }
}

// From scores to weights, by the largest score so far; what was summed before is scaled to it. A tile's
// first key is always one of the text's, so the largest is finite.
template <int SIZE> __device__ void soften(float (&scores)[KEY_GROUPS][4], Running<SIZE>& running) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float larger = running.largest[half];
#pragma unroll
        for (int group = 0; group < KEY_GROUPS; ++group)
            larger = fmaxf(larger, fmaxf(scores[group][half * 2], scores[group][half * 2 + 1]));
        larger = max_of_lanes<4>(larger);
        const float keep = exp2f(running.largest[half] - larger);
        running.largest[half] = larger;
        running.total[half] *= keep;
#pragma unroll
        for (int part = 0; part < SIZE / 8; ++part) {
            running.sum[part][half * 2] *= keep;
            running.sum[part][half * 2 + 1] *= keep;
        }
#pragma unroll
        for (int group = 0; group < KEY_GROUPS; ++group) {
#pragma unroll
            for (int i = half * 2; i < half * 2 + 2; ++i) {
                scores[group][i] = exp2f(scores[group][i] - larger);
                running.total[half] += scores[group][i];
            }
        }
    }
}

// Half `i % 2` of the words of two neighbouring values, the first one in the low half.
__device__ inline unsigned column_of(unsigned upper, unsigned lower, int i) {
    return i % 2 ? (upper >> 16) | (lower & 0xffff0000u) : (upper & 0xffffu) | (lower << 16);
}

template <int SIZE>
__device__ void add_values(const float (&weights)[KEY_GROUPS][4], const SharedTile<SIZE>& tile,
                           Running<SIZE>& running) {
    const int row = lane_index() / 4, pair = lane_index() % 4;
#pragma unroll
    for (int step = 0; step < TILE_KEYS / 16; ++step) {
        const float(&low)[4] = weights[step * 2];
        const float(&high)[4] = weights[step * 2 + 1];
        const unsigned left[4] = {pack({low[0], low[1]}), pack({low[2], low[3]}),
                                  pack({high[0], high[1]}), pack({high[2], high[3]})};
        const int key = step * 16 + pair * 2;
#pragma unroll
        for (int part = 0; part < SIZE / 8; ++part) {
            const int word = part * 4 + row / 2;
            multiply_add(running.sum[part], left,
                         column_of(tile.values[key][word], tile.values[key + 1][word], row),
                         column_of(tile.values[key + 8][word], tile.values[key + 9][word], row));
        }
    }
}

template <int SIZE>
__device__ void write_out(Running<SIZE>& running, unsigned first, unsigned end, int hidden, bf16* column) {
    const int row = lane_index() / 4, pair = lane_index() % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float total = sum_of_lanes<4>(running.total[half]);
        const unsigned query = first + row + half * 8;
        if (query < end) {
#pragma unroll
            for (int part = 0; part < SIZE / 8; ++part) {
                const float* sum = running.sum[part] + half * 2;
                store(column + static_cast<size_t>(query) * hidden, part * 4 + pair,
                      {sum[0] / total, sum[1] / total});
            }
        }
    }
}

template <int SIZE>
__device__ void attend(const bf16* product, const float* bias, const Tile* tiles, int hidden, bf16* out) {
    __shared__ SharedTile<SIZE> shared;
    const Tile tile = tiles[blockIdx.x];
    const int column = static_cast<int>(blockIdx.y) * SIZE;
    const HeadView<bf16> head = {product, bias, hidden, column};
    const unsigned first = tile.first + warp_index() * 16;
    // A warp without queries still loads keys and values for the others.
    const bool busy = first < tile.end;
    unsigned queries[SIZE / 16][4];
    load_queries<SIZE>(head, first, tile.end, queries);
    Running<SIZE> running;
    for (unsigned key = tile.begin; key < tile.end; key += TILE_KEYS) {
        load_tile(head, key, tile.end, shared);
        __syncthreads();
        if (busy) {
            float scores[KEY_GROUPS][4];
            score<SIZE>(queries, shared, static_cast<int>(tile.end - key), scores);
            soften(scores, running);
            add_values(scores, shared, running);
        }
        __syncthreads();
    }
    if (busy) write_out(running, first, tile.end, hidden, out + column);
}
