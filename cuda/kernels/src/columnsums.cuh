// Two sums of each column over all blocks, what batch normalisation (norm.cu) computes from them, and
// its affine map, which the max-pool (pool.cu) applies too.
//
// A block has 256 threads. Each sums some rows of a pack of columns, and all threads of the same
// column are ACROSS apart. Blocks write partial sums, part[p][0..1][c]. The last blocks to finish
// add them in a fixed order, so runs are reproducible on any GPU.
#pragma once
#include "half.cuh"

#define DOWN 32 // groups of parts

// Operation after the affine map of a normalisation.
#define PLAIN 0
#define WITH_RELU 1
#define WITH_ADD_RELU 2

// How a gradient gets the mask of the ReLU (where its output is positive).
#define RELU_NONE 0
#define RELU_FROM_OUTPUT 1 // y > 0
#define RELU_FROM_BITS 2   // one bit per number: byte i holds those of pack i
#define RELU_FROM_INPUT 3  // (x-mean)·scale + shift > 0, recomputed

// affine_of applies the map to one number.
__device__ inline float affine_of(float x, float mean, float scale, float shift) { return (x - mean) * scale + shift; }

// affine computes the map of a column: y = (x - mean32)·scale + shift.
__device__ inline void affine(float *mean32, float *scale, float *shift, double mean, double square, float gamma,
                              float beta) {
  double k = (double)gamma / sqrt(square);
  float rounded = (float)mean;
  *mean32 = rounded;
  *scale = (float)k;
  *shift = (float)((double)beta - (mean - (double)rounded) * k);
}

// write_part adds the sums of the block's threads, of which every ACROSS-th has the same N columns,
// and writes them to part number mine. warps is shared memory that no thread uses any more.
template <int ACROSS, int N, class S>
__device__ inline void write_part(double (*warps)[2][ACROSS * N], double *part, int c, int mine, const S (&s1)[N],
                                  const S (&s2)[N]) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int j = 0; j < N; j++) {
    double a = (double)s1[j], b = (double)s2[j];
#pragma unroll
    for (int half = ACROSS; half < WARP; half *= 2) {
      a = a + __shfl_xor_sync(ALL_LANES, a, half);
      b = b + __shfl_xor_sync(ALL_LANES, b, half);
    }
    if (lane < ACROSS) {
      warps[warp][0][lane * N + j] = a;
      warps[warp][1][lane * N + j] = b;
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = threadIdx.x; i < 2 * ACROSS * N; i += 256) {
    const int which = i / (ACROSS * N), column = i % (ACROSS * N), at = blockIdx.x * ACROSS * N + column;
    if (at >= c) continue;
    double s = 0.0;
#pragma unroll
    for (int w = 0; w < 8; w++) s = s + warps[w][which][column];
    part[((i64)mine * 2 + which) * c + at] = s;
  }
}

// last_to_arrive counts a block and reports to all its threads whether it is the last of `expected`
// blocks. What the others wrote before they arrived can be read then, by volatile loads: others
// may find what this multiprocessor has cached. The count is 0 before and after.
__device__ inline bool last_to_arrive(u32 *count, u32 expected) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(count, 1u) == expected - 1;
    if (last) *count = 0;
  }
  __syncthreads();
  const bool is_last = last;
  __threadfence();
  return is_last;
}

// add_parts adds the parts of the columns of this block, after write_part. The parts are in DOWN
// groups, one of every DOWN-th part; the last block of a group adds it, and the last of those adds
// the groups. It returns false in all other blocks. mine is the number of this block's part.
// arrived has DOWN + 1 numbers for each block of columns, which are 0 before and after.
template <int COLUMNS>
__device__ inline bool add_parts(double (*totals)[COLUMNS], double *part, int c, int mine, u32 *arrived) {
  const int parts = gridDim.y, group = mine % DOWN, groups = parts < DOWN ? parts : DOWN;
  u32 *counts = arrived + blockIdx.x * (DOWN + 1);
  if (!last_to_arrive(counts + group, (parts - group + DOWN - 1) / DOWN)) return false;
  for (int i = threadIdx.x; i < 2 * COLUMNS; i += 256) {
    const int at = blockIdx.x * COLUMNS + i % COLUMNS;
    volatile double *sums = part + (i64)(i / COLUMNS) * c + at;
    double s = 0.0;
    if (at >= c) continue;
#pragma unroll 8
    for (int p = group; p < parts; p += DOWN) s = s + sums[(i64)2 * p * c];
    sums[(i64)2 * group * c] = s;
  }
  if (!last_to_arrive(counts + DOWN, groups)) return false;
  for (int i = threadIdx.x; i < 2 * COLUMNS; i += 256) {
    const int at = blockIdx.x * COLUMNS + i % COLUMNS;
    volatile double *sums = part + (i64)(i / COLUMNS) * c + at;
    double s = 0.0;
    if (at >= c) continue;
#pragma unroll 8
    for (int g = 0; g < groups; g++) s = s + sums[(i64)2 * g * c];
    totals[i / COLUMNS][i % COLUMNS] = s;
  }
  __syncthreads();
  return true;
}

// Statistics is the outputs of the sums of x: mean, variance and the affine map of each column.
struct Statistics {
  const float *gamma, *beta;
  double eps;
  float *mean, *variance, *scale, *shift;

  // finish computes them for a column from Σ x - from and Σ (x - from)².
  __device__ void finish(int column, double from, double sum, double squares, i64 m) const {
    const double d = sum / (double)m;
    double v = (squares - sum * d) / (double)m;
    if (v < 0.0) v = 0.0;
    affine(mean + column, scale + column, shift + column, from + d, v + eps, gamma[column], beta[column]);
    variance[column] = (float)v;
  }
};

// GradientFactors is the outputs of the sums of a gradient, and what it needs for them: the
// gradients of gamma and beta, and the factors of dx = a·g + ((x-mean)·b + e).
struct GradientFactors {
  const float *gamma, *variance;
  double eps;
  float *dgamma, *dbeta, *a, *b, *e;

  // finish computes them for a column from Σ g and Σ g·(x - mean).
  __device__ void finish(int column, double g, double products, i64 m) const {
    const double inv = 1.0 / sqrt((double)variance[column] + eps);
    const double k = (double)gamma[column] * inv, along = products * inv;
    dbeta[column] = (float)g;
    dgamma[column] = (float)along;
    a[column] = (float)k;
    b[column] = (float)(-(k * inv * along) / (double)m);
    e[column] = (float)(-(k * g) / (double)m);
  }
};
