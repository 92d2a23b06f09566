// The kernels, as they are, on the host (emulation.h), against the same in plain double loops: every
// number format, head sizes and text lengths on both sides of each tile's edge.

#include "emulation.h"

#include "../bert.cu"

#include <algorithm>
#include <string>

using Values = std::vector<double>;

static int failures = 0;

static double random_number() {
    static unsigned seed = 7;
    seed = seed * 1664525u + 1013904223u;
    return seed / 4294967296.0 * 2.0 - 1.0;
}

// Numbers in a kernel's format, the same numbers as doubles, and a margin that nothing may touch.
template <typename T> struct Array {
    static constexpr size_t MARGIN = 64;
    std::vector<T> memory;
    size_t size;

    explicit Array(size_t count) : memory(count + 2 * MARGIN), size(count) {
        memset(memory.data(), 0x7f, memory.size() * sizeof(T));
    }
    explicit Array(const Values& values) : Array(values.size()) {
        for (size_t i = 0; i < size; ++i) set(i, static_cast<float>(values[i]));
    }
    T* data() { return memory.data() + MARGIN; }
    void set(size_t i, float value);
    double get(size_t i) const;
    Values values() const {
        Values all(size);
        for (size_t i = 0; i < size; ++i) all[i] = get(i);
        return all;
    }
    bool margin_is_whole() const {
        const std::vector<char> untouched(MARGIN * sizeof(T), 0x7f);
        return !memcmp(memory.data(), untouched.data(), untouched.size()) &&
               !memcmp(memory.data() + MARGIN + size, untouched.data(), untouched.size());
    }
};

template <> void Array<float>::set(size_t i, float value) { data()[i] = value; }
template <> double Array<float>::get(size_t i) const { return memory[MARGIN + i]; }
template <> void Array<bf16>::set(size_t i, float value) {
    data()[i].bits = static_cast<unsigned short>(rounded(value));
}
template <> double Array<bf16>::get(size_t i) const {
    return float_of_bits(static_cast<unsigned>(memory[MARGIN + i].bits) << 16);
}

template <typename T> Array<T> random_array(size_t count, double scale = 1.0) {
    Array<T> array(count);
    for (size_t i = 0; i < count; ++i) array.set(i, static_cast<float>(random_number() * scale));
    return array;
}

template <typename T> double tolerance();
template <> double tolerance<float>() { return 2e-5; }
// Half a step of eight bits, for a result and what it was made of.
template <> double tolerance<bf16>() { return 1.2e-2; }

template <typename T> void expect(const Array<T>& got, const Values& want, double allowed, const std::string& what) {
    double worst = 0.0;
    for (size_t i = 0; i < want.size(); ++i) {
        const double error = std::abs(got.get(i) - want[i]) / std::max(1.0, std::abs(want[i]));
        if (!(error <= worst)) worst = error;
    }
    const bool fine = worst <= allowed && got.margin_is_whole();
    if (fine) return;
    printf("%s: worst error %g, margin %s\n", what.c_str(), worst, got.margin_is_whole() ? "whole" : "touched");
    ++failures;
}

static void normalised(Values& row, const double* gamma, const double* beta, double epsilon) {
    const double width = static_cast<double>(row.size());
    double mean = 0.0, variance = 0.0;
    for (double x : row) mean += x / width;
    for (double x : row) variance += (x - mean) * (x - mean) / width;
    for (size_t i = 0; i < row.size(); ++i)
        row[i] = (row[i] - mean) / std::sqrt(variance + epsilon) * gamma[i] + beta[i];
}

template <typename T> void check_norms(int tokens, int hidden, bool backwards) {
    const float epsilon = 1e-5f;
    auto words = random_array<T>(9 * hidden), places = random_array<T>(5 * hidden);
    auto norm = random_array<float>(3 * hidden);
    std::vector<unsigned> ids(tokens), positions(tokens);
    for (int i = 0; i < tokens; ++i) ids[i] = i * 5 % 9, positions[i] = i % 5;
    Array<T> rows(static_cast<size_t>(tokens) * hidden);
    const Dim grid{static_cast<unsigned>((tokens + NORM_WARPS - 1) / NORM_WARPS), 1};
    launch(grid, NORM_WARPS * WARP, backwards, [&] {
        embed(ids.data(), positions.data(), words.data(), places.data(), norm.data(), epsilon, tokens, hidden,
              rows.data());
    });
    const Values w = words.values(), p = places.values(), n = norm.values();
    Values want;
    for (int token = 0; token < tokens; ++token) {
        Values row(hidden);
        for (int i = 0; i < hidden; ++i) row[i] = w[ids[token] * hidden + i] + p[positions[token] * hidden + i];
        normalised(row, n.data(), n.data() + hidden, epsilon);
        want.insert(want.end(), row.begin(), row.end());
    }
    expect(rows, want, tolerance<T>(), "embed, " + std::to_string(hidden));

    auto residual = random_array<T>(rows.size);
    const Values before = rows.values(), add = residual.values();
    launch(grid, NORM_WARPS * WARP, backwards,
           [&] { add_norm(rows.data(), residual.data(), norm.data(), epsilon, tokens, hidden); });
    want.clear();
    for (int token = 0; token < tokens; ++token) {
        Values row(hidden);
        for (int i = 0; i < hidden; ++i) row[i] = before[token * hidden + i] + add[token * hidden + i] + n[i];
        normalised(row, n.data() + hidden, n.data() + 2 * hidden, epsilon);
        want.insert(want.end(), row.begin(), row.end());
    }
    expect(rows, want, tolerance<T>(), "add_norm, " + std::to_string(hidden));
}

template <typename T> void check_activation(int kind, bool backwards) {
    const int width = 600, tokens = 3;
    auto rows = random_array<T>(tokens * width, 4.0);
    auto bias = random_array<float>(width);
    const Values before = rows.values(), add = bias.values();
    launch({tokens, 1}, 256, backwards, [&] { activate(rows.data(), bias.data(), width, kind); });
    Values want(before.size());
    for (size_t i = 0; i < want.size(); ++i) {
        const double x = before[i] + add[i % width];
        const double tanh_of = std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
        want[i] = kind == GELU ? 0.5 * x * std::erfc(-x / std::sqrt(2.0))
                               : (kind == RELU ? std::max(x, 0.0) : 0.5 * x * (1.0 + tanh_of));
    }
    expect(rows, want, tolerance<T>(), "activate, " + std::to_string(kind));
}

template <typename T> void check_pool(int mode, int unit, int hidden, bool backwards) {
    const std::vector<unsigned> bounds = {0, 1, 4, 23, 31};
    const size_t texts = bounds.size() - 1;
    auto rows = random_array<T>(bounds.back() * hidden);
    Array<float> out(texts * hidden);
    const Dim grid{static_cast<unsigned>(texts), 1};
    launch(grid, POOL_WARPS * WARP, backwards,
           [&] { pool(rows.data(), bounds.data(), mode, unit, hidden, out.data()); });
    const Values all = rows.values();
    Values want(texts * hidden);
    for (size_t text = 0; text < texts; ++text) {
        double* vector = want.data() + text * hidden;
        double squares = 0.0;
        for (int i = 0; i < hidden; ++i) {
            const unsigned begin = bounds[text], end = mode == CLS ? begin + 1 : bounds[text + 1];
            double sum = mode == MAX ? -INFINITY : 0.0;
            for (unsigned token = begin; token < end; ++token) {
                const double x = all[token * hidden + i];
                sum = mode == MAX ? std::max(sum, x) : sum + x;
            }
            vector[i] = mode == MEAN ? sum / (end - begin) : sum;
            squares += vector[i] * vector[i];
        }
        for (int i = 0; unit && i < hidden; ++i) vector[i] /= std::sqrt(squares);
    }
    expect(out, want, 1e-5, "pool, mode " + std::to_string(mode));
}

// Tiles as src/cuda/plan.rs makes them.
static std::vector<Tile> tiles_of(const std::vector<unsigned>& bounds) {
    std::vector<Tile> tiles;
    for (size_t text = 0; text + 1 < bounds.size(); ++text) {
        for (unsigned first = bounds[text]; first < bounds[text + 1]; first += TILE_QUERIES)
            tiles.push_back({bounds[text], bounds[text + 1], first});
    }
    return tiles;
}

// One query's weighted values, by the definition.
static void attend_plainly(const Values& product, int hidden, int column, int size, const Tile& text,
                           unsigned query, double* out) {
    auto number = [&](Part part, unsigned token, int i) {
        return product[static_cast<size_t>(token) * 3 * hidden + part * hidden + column + i];
    };
    double total = 0.0;
    for (unsigned key = text.begin; key < text.end; ++key) {
        double score = 0.0;
        for (int i = 0; i < size; ++i) score += number(QUERY, query, i) * number(KEY, key, i);
        const double weight = std::exp2(score);
        total += weight;
        for (int i = 0; i < size; ++i) out[i] += weight * number(VALUE, key, i);
    }
    for (int i = 0; i < size; ++i) out[i] /= total;
}

template <typename T, int SIZE> void check_attention(const std::vector<unsigned>& lengths, bool backwards) {
    const int heads = 2, hidden = heads * SIZE;
    std::vector<unsigned> bounds = {0};
    for (unsigned length : lengths) bounds.push_back(bounds.back() + length);
    auto product = random_array<T>(static_cast<size_t>(bounds.back()) * 3 * hidden);
    auto bias = random_array<float>(3 * hidden, 0.5);
    Array<T> out(static_cast<size_t>(bounds.back()) * hidden);
    const std::vector<Tile> tiles = tiles_of(bounds);
    launch({static_cast<unsigned>(tiles.size()), heads}, ATTENTION_WARPS * WARP, backwards, [&] {
        attend<SIZE>(product.data(), bias.data(), tiles.data(), hidden, out.data());
    });
    Values sum = product.values();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += bias.get(i % (3 * hidden));
    Values want(out.size);
    for (size_t text = 0; text < lengths.size(); ++text) {
        const Tile whole = {bounds[text], bounds[text + 1], 0};
        for (unsigned query = whole.begin; query < whole.end; ++query) {
            for (int head = 0; head < heads; ++head) {
                double* at = want.data() + static_cast<size_t>(query) * hidden + head * SIZE;
                attend_plainly(sum, hidden, head * SIZE, SIZE, whole, query, at);
            }
        }
    }
    expect(out, want, tolerance<T>(), "attention, head size " + std::to_string(SIZE));
}

template <typename T> void check_all(bool backwards) {
    for (int hidden : {64, 96, 384, 1024}) check_norms<T>(7, hidden, backwards);
    for (int kind : {GELU, GELU_TANH, RELU}) check_activation<T>(kind, backwards);
    for (int mode : {MEAN, CLS, MAX}) {
        check_pool<T>(mode, 0, 96, backwards);
        check_pool<T>(mode, 1, 384, backwards);
    }
}

int main() {
    for (bool backwards : {false, true}) {
        check_all<float>(backwards);
        check_attention<float, 32>({1, 2, 66}, backwards);
        check_attention<float, 64>({3, 17}, backwards);
        check_all<bf16>(backwards);
        check_attention<bf16, 32>({1, 2, 15, 16, 17, 63, 64, 65, 129}, backwards);
        check_attention<bf16, 64>({3, 8, 64, 70}, backwards);
        check_attention<bf16, 32>({512}, backwards);
    }
    if (failures) printf("%d checks failed\n", failures);
    else printf("the kernels agree with plain loops\n");
    return failures ? 1 : 0;
}
