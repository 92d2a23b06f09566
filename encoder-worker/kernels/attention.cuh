// What both forms of the attention kernel share: its work, and reading queries, keys and values.
//
// One block a tile (up to 64 queries of one text) and head; the scores, their softmax and the weighted
// values never leave it. Queries come scaled by log2(e) / sqrt(head size), so exp2 gives the weights.
#pragma once

#include "numbers.cuh"
#include "warp.cuh"

constexpr int ATTENTION_WARPS = 4;
constexpr int TILE_QUERIES = 64;

// Laid out as in src/cuda/plan.rs.
struct Tile {
    unsigned begin, end; // the text's tokens
    unsigned first;      // the tile's first query
};

enum Part { QUERY = 0, KEY = 1, VALUE = 2 };

// One head's columns of the product `[tokens, 3 * hidden]` and of its bias.
template <typename T> struct HeadView {
    const T* product;
    const float* bias;
    int hidden;
    int column;

    // Numbers `2 * pair` and the next of a token's query, key or value.
    __device__ Two get(Part part, unsigned token, int pair) const {
        const int start = part * hidden + column;
        const T* row = product + static_cast<size_t>(token) * 3 * hidden + start;
        return load(row, pair) + load(bias + start, pair);
    }
};
