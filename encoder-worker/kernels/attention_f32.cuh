// Attention in float: one warp a query, one pair of numbers a lane. For holding results against; bf16
// is the fast form.
#pragma once

#include "attention.cuh"

template <int SIZE>
__device__ void attend(const float* product, const float* bias, const Tile* tiles, int hidden, float* out) {
    const Tile tile = tiles[blockIdx.x];
    const int column = static_cast<int>(blockIdx.y) * SIZE;
    const HeadView<float> head = {product, bias, hidden, column};
    const int pair = lane_index();
    const bool used = pair < SIZE / 2;
    const Two zero = {0.0f, 0.0f};
    const unsigned last = tile.first + TILE_QUERIES < tile.end ? tile.first + TILE_QUERIES : tile.end;
    for (unsigned query = tile.first + warp_index(); query < last; query += ATTENTION_WARPS) {
        const Two q = used ? head.get(QUERY, query, pair) : zero;
        float largest = -INFINITY, total = 0.0f;
        Two sum = zero;
        for (unsigned key = tile.begin; key < tile.end; ++key) {
            const Two k = used ? head.get(KEY, key, pair) : zero;
            const Two v = used ? head.get(VALUE, key, pair) : zero;
            const float score = sum_of_lanes(q.x * k.x + q.y * k.y);
            const float larger = fmaxf(largest, score);
            const float keep = exp2f(largest - larger), weight = exp2f(score - larger);
            sum = {sum.x * keep + weight * v.x, sum.y * keep + weight * v.y};
            total = total * keep + weight;
            largest = larger;
        }
        if (used) {
            float* row = out + static_cast<size_t>(query) * hidden + column;
            store(row, pair, {sum.x / total, sum.y / total});
        }
    }
}
