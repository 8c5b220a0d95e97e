// Bodies of loss.cu, and functions on a row of logits.
#pragma once
#include "block.cuh"
#include "exponential.cuh"

#define LANES 16
#define PIECE 4096

// top_of returns the largest number of a row, ignoring NaN. A zero result is +0.
__device__ inline float top_of(const float *x, int n, int lane) {
  float top = __uint_as_float(0xff800000u); // -infinity
  for (int j = lane; j < n; j += LANES)
    if (x[j] > top) top = x[j];
#pragma unroll
  for (int half = LANES / 2; half > 0; half /= 2) {
    float other = __shfl_xor_sync(ALL_LANES, top, half, LANES);
    if (other > top) top = other;
  }
  return top == 0.0f ? 0.0f : top;
}

// tree adds the numbers of the lanes in a binary tree and returns the sum to all lanes.
__device__ inline double tree(double s) {
#pragma unroll
  for (int half = LANES / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half, LANES);
  return __shfl_sync(ALL_LANES, s, 0, LANES);
}

// exponentials returns the sum of exp(x - top) over a row, and writes them, rounded, to e unless it
// is null.
__device__ inline double exponentials(float *e, const float *x, int n, double top, int lane) {
  double sum = 0.0;
  for (int begin = 0; begin < n; begin += PIECE) {
    int end = n - begin < PIECE ? n : begin + PIECE;
    double s = 0.0;
    for (int j = begin + lane; j < end; j += LANES) {
      double v = exponential((double)x[j] - top);
      s = s + v;
      if (e) e[j] = (float)v;
    }
    sum = sum + tree(s);
  }
  return sum;
}

// class_of returns the label of a row, or -1 if it is not a class; then *bad becomes at most the
// row.
__device__ inline int class_of(const float *labels, int row, int n, u32 *bad, int lane) {
  float v = labels[row];
  int c = v >= 0.0f && v < (float)n ? (int)v : -1;
  if (c >= 0 && (float)c == v) return c;
  if (lane == 0) atomicMin(bad, (u32)row);
  return -1;
}

// softmax_cross_entropy: the loss of each row, and the derivative of the mean over the m rows of an
// agent. Logits and gradients of consecutive agents are `stride` numbers apart; labels are
// contiguous. The targets are s/n, plus 1-s at the label. *bad becomes the first row whose label is
// not a class, if that is less.
BODY softmax_cross_entropy_of(const Block &block, double *row_loss, float *dlogits, const float *logits,
                              const float *labels, u32 *bad, int rows, int m, int n, i64 stride, double s) {
  const int lane = block.thread() % LANES;
  const int row = (int)(block.index() / LANES);
  const bool mine = row < rows; // all lanes stay, because they meet in the trees
  const i64 at = mine ? row / m * stride + (i64)(row % m) * n : 0;
  const float *x = logits + at;
  float *d = dlogits + at;
  int c = mine ? class_of(labels, row, n, bad, lane) : -1;
  float top = top_of(x, n, lane);
  double sum = exponentials(mine ? d : (float *)0, x, n, (double)top, lane);
  double below = 0.0, each = s / (double)n, per_row = 1.0 / (double)m;
  if (s != 0.0) {
    // Unrolled, the loop makes the compiler spill registers around the divisions below.
#pragma unroll 1
    for (int j = lane; j < n; j += LANES) below = below + ((double)x[j] - (double)top);
    below = tree(below);
  }
  if (c < 0) return;
  // At the label, p-1 is computed before rounding: it is all that remains of the gradient when p is
  // close to 1.
  double scale = per_row / sum;
  for (int j = lane; j < n; j += LANES) {
    double e = (double)d[j];
    if (s != 0.0) {
      double p = j == c ? (e - sum) / sum + s : e / sum;
      d[j] = (float)((p - each) * per_row);
    } else {
      d[j] = (float)((j == c ? e - sum : e) * scale);
    }
  }
  if (lane == 0) {
    double ahead = (double)x[c] - (double)top;
    row_loss[row] = s != 0.0 ? logarithm(sum) - (1.0 - s) * ahead - each * below : logarithm(sum) - ahead;
  }
}
