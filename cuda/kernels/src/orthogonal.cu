// The ends of an orthogonalization: matrices of up to 16 vectors are copied to a batch of matrices,
// divided by their norms, and back. A batch has matrices of `short_side` rows and `long_side`
// columns, `stride` numbers apart: first those of the first vector. A matrix that is higher than
// wide is transposed on both ways.
#include "each.cuh"
#include "half.cuh"

#define SQUARES_BLOCK 4096 // the squares of a partial sum
#define MATRIX_TILE 32

struct OrthogonalMatrix {
  i64 offset; // of its first number in the vector
  float scale;
  u32 tall;
};

// sum_of_block returns the sum over a block of 256 threads, to all of them, in an order that does
// not vary.
__device__ inline double sum_of_block(double v) {
  __shared__ double warps[256 / WARP];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) v = v + __shfl_down_sync(ALL_LANES, v, half);
  if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = v;
  __syncthreads();
  double s = warps[0];
#pragma unroll
  for (int w = 1; w < 256 / WARP; w++) s = s + warps[w];
  return s;
}

// entry returns the place in the batch of a block's matrix, which blockIdx.y counts in its vector.
__device__ inline i64 batch_entry() { return (i64)blockIdx.z * gridDim.y + blockIdx.y; }

// orthogonal_squares: part[e·parts + b] is block b of the sum of squares of matrix e, which has n
// numbers.
KERNEL(256) orthogonal_squares(double *part, const OrthogonalMatrix *list, i64 n, EACH(const float *, v)) {
  const float *x = PICK(v) + list[blockIdx.y].offset;
  const i64 begin = (i64)blockIdx.x * SQUARES_BLOCK;
  double s = 0.0;
#pragma unroll
  for (int k = 0; k < SQUARES_BLOCK / 256; k++) {
    const i64 i = begin + k * 256 + threadIdx.x;
    const double one = i < n ? (double)x[i] : 0.0;
    s = s + one * one;
  }
  s = sum_of_block(s);
  if (threadIdx.x == 0) part[batch_entry() * gridDim.x + blockIdx.x] = s;
}

// MatrixTile is a block's part of a matrix of rows × columns as it is stored in the vector:
// MATRIX_TILE rows from `row` on, and as many columns. A thread has every eighth row, from `first`
// on, of one column.
struct MatrixTile {
  int row, column, first, lane, rows, columns;

  __device__ MatrixTile(const OrthogonalMatrix &m, int short_side, int long_side) {
    rows = m.tall ? long_side : short_side, columns = m.tall ? short_side : long_side;
    const int across = (columns + MATRIX_TILE - 1) / MATRIX_TILE;
    row = (int)blockIdx.x / across * MATRIX_TILE, column = (int)blockIdx.x % across * MATRIX_TILE;
    first = threadIdx.x / MATRIX_TILE, lane = threadIdx.x % MATRIX_TILE;
  }

  // stored calls f(i, j, at) for the thread's numbers: row and column in the tile, and place in the
  // vector's matrix.
  template <class F> __device__ void stored(F f) const {
#pragma unroll
    for (int i = first; i < MATRIX_TILE; i += 256 / MATRIX_TILE)
      if (row + i < rows && column + lane < columns) f(i, lane, (i64)(row + i) * columns + column + lane);
  }

  // turned is stored for the matrix of the batch, whose rows are the columns of a tall one.
  template <class F> __device__ void turned(bool tall, F f) const {
    if (!tall) return stored(f);
#pragma unroll
    for (int j = first; j < MATRIX_TILE; j += 256 / MATRIX_TILE)
      if (row + lane < rows && column + j < columns) f(lane, j, (i64)(column + j) * rows + row + lane);
  }
};

// orthogonal_start: x[e] = v/max(√(sum of squares), least), of which part has `parts` parts for
// each matrix.
template <class T>
__device__ inline void orthogonal_start(T *x, i64 stride, const double *part, int parts,
                                        const OrthogonalMatrix &m, const float *v,
                                        int short_side, int long_side, double least) {
  __shared__ float tile[MATRIX_TILE][MATRIX_TILE + 1];
  double s = 0.0;
  for (int i = threadIdx.x; i < parts; i += 256) s = s + part[batch_entry() * parts + i];
  const double norm = sqrt(sum_of_block(s));
  const float factor = (float)(1.0 / (norm < least ? least : norm));
  const MatrixTile t(m, short_side, long_side);
  const float *from = v + m.offset;
  t.stored([&](int i, int j, i64 at) { tile[i][j] = factor * from[at]; });
  __syncthreads();
  T *to = x + batch_entry() * stride;
  t.turned(m.tall, [&](int i, int j, i64 at) { to[at] = Number<T>::from(tile[i][j]); });
}

// orthogonal_end: v = scale·x[e].
template <class T>
__device__ inline void orthogonal_end(float *v, const T *x, i64 stride, const OrthogonalMatrix &m,
                                      int short_side, int long_side) {
  __shared__ float tile[MATRIX_TILE][MATRIX_TILE + 1];
  const MatrixTile t(m, short_side, long_side);
  const T *from = x + batch_entry() * stride;
  t.turned(m.tall, [&](int i, int j, i64 at) { tile[i][j] = to_float(from[at]); });
  __syncthreads();
  float *to = v + m.offset;
  t.stored([&](int i, int j, i64 at) { to[at] = m.scale * tile[i][j]; });
}

#define ENDS(T, name) \
  KERNEL(256) \
  orthogonal_start_##name(T *x, i64 stride, const double *part, int parts, const OrthogonalMatrix *list, \
                          int short_side, int long_side, double least, EACH(const float *, v)) { \
    orthogonal_start<T>(x, stride, part, parts, list[blockIdx.y], PICK(v), short_side, long_side, least); \
  } \
  KERNEL(256) \
  orthogonal_end_##name(const T *x, i64 stride, const OrthogonalMatrix *list, int short_side, int long_side, \
                        EACH(float *, v)) { \
    orthogonal_end<T>(PICK(v), x, stride, list[blockIdx.y], short_side, long_side); \
  }
ENDS(float, f32)
ENDS(BFloat, bf16)
