// Runs CUDA kernels on the host: every thread of a block is a fibre, and a barrier, a shuffle or a
// tensor core product is where it lets the others run. Blocks run one after another. A barrier that
// not all threads reach is reported; one that is missing shows when the threads' order is turned round.
#pragma once

#include <ucontext.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define TOOLGATE_ON_HOST
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)

struct Dim {
    unsigned x = 0, y = 0;
};

static Dim threadIdx, blockIdx, blockDim;

class Barrier {
  public:
    explicit Barrier(unsigned size) : size_(size) {}
    void wait();

    // How often it has opened.
    unsigned generation() const { return generation_; }

  private:
    unsigned size_, arrived_ = 0, generation_ = 0;
};

// Lanes hand each other values by `shelf`: a second one, so that nobody can overwrite what another has
// still to read, saves a barrier.
struct Warp {
    Barrier barrier{32};
    struct Shelf {
        float value[32];
        unsigned left[32][4], right[32][2];
    } shelves[2];
    Shelf& shelf() { return shelves[barrier.generation() % 2]; }
};

class Block {
  public:
    Block(unsigned threads, std::function<void()> body) : barrier(threads), body_(std::move(body)) {
        for (unsigned i = 0; i < threads; ++i) fibres_.push_back(std::make_unique<Fibre>());
        for (unsigned i = 0; i < threads / 32; ++i) warps_.push_back(std::make_unique<Warp>());
    }

    // Runs all threads to their end, first to last in every round or last to first.
    void run(bool backwards) {
        running = this;
        for (auto& fibre : fibres_) prepare(*fibre);
        for (size_t left = fibres_.size(); left > 0;) {
            moved = false;
            for (size_t i = 0; i < fibres_.size(); ++i) {
                current_ = static_cast<unsigned>(backwards ? fibres_.size() - 1 - i : i);
                Fibre& fibre = *fibres_[current_];
                const bool waits = fibre.barrier && fibre.barrier->generation() == fibre.generation;
                if (fibre.done || waits) continue;
                threadIdx.x = current_;
                swapcontext(&scheduler_, &fibre.context);
                if (fibre.done) {
                    --left;
                    moved = true;
                }
            }
            if (!moved) {
                fprintf(stderr, "deadlock: %zu threads wait for others that never come\n", left);
                exit(1);
            }
        }
    }

    // Lets the others run until `barrier` has opened.
    void wait_for(const Barrier& barrier) {
        Fibre& fibre = *fibres_[current_];
        fibre.barrier = &barrier;
        fibre.generation = barrier.generation();
        swapcontext(&fibre.context, &scheduler_);
    }
    Warp& warp() { return *warps_[current_ / 32]; }
    unsigned lane() const { return current_ % 32; }

    static Block* running;
    Barrier barrier;
    // Whether a barrier opened or a thread ended in this round.
    bool moved = false;

  private:
    struct Fibre {
        ucontext_t context;
        std::vector<char> stack = std::vector<char>(64 * 1024);
        bool done = false;
        // What it waits for, and how often that had opened.
        const Barrier* barrier = nullptr;
        unsigned generation = 0;
    };

    void prepare(Fibre& fibre) {
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.context.uc_link = &scheduler_;
        makecontext(&fibre.context, &Block::enter, 0);
    }

    static void enter() {
        running->body_();
        running->fibres_[running->current_]->done = true;
    }

    std::function<void()> body_;
    std::vector<std::unique_ptr<Fibre>> fibres_;
    std::vector<std::unique_ptr<Warp>> warps_;
    ucontext_t scheduler_;
    unsigned current_ = 0;
};

inline Block* Block::running = nullptr;

inline void Barrier::wait() {
    if (++arrived_ < size_) {
        Block::running->wait_for(*this);
        return;
    }
    arrived_ = 0;
    ++generation_;
    Block::running->moved = true;
}

inline void __syncthreads() {
    Block::running->barrier.wait();
}

inline float __shfl_xor_sync(unsigned, float value, int lanes) {
    Block& block = *Block::running;
    Warp::Shelf& shelf = block.warp().shelf();
    shelf.value[block.lane()] = value;
    block.warp().barrier.wait();
    return shelf.value[block.lane() ^ static_cast<unsigned>(lanes)];
}

inline float half_of(unsigned both, unsigned which) {
    const unsigned bits = which ? both & 0xffff0000u : both << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// mma.m16n8k16 by its description: which lane and register hold element (row, k) of the left and
// (k, column) of the right matrix.
inline void multiply_add(float (&result)[4], const unsigned (&left)[4], unsigned right0, unsigned right1) {
    Block& block = *Block::running;
    Warp::Shelf& shelf = block.warp().shelf();
    const unsigned lane = block.lane();
    memcpy(shelf.left[lane], left, sizeof left);
    shelf.right[lane][0] = right0;
    shelf.right[lane][1] = right1;
    block.warp().barrier.wait();
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 16; ++k) {
            const unsigned pair = k % 8 / 2;
            const unsigned a = shelf.left[row % 8 * 4 + pair][row / 8 + k / 8 * 2];
            const unsigned b = shelf.right[column * 4 + pair][k / 8];
            result[i] += half_of(a, k % 2) * half_of(b, k % 2);
        }
    }
}

// kernel<<<grid, threads>>>(...), with the call in `body`.
inline void launch(Dim grid, unsigned threads, bool backwards, const std::function<void()>& body) {
    blockDim.x = threads;
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
        for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) Block(threads, body).run(backwards);
    }
}
