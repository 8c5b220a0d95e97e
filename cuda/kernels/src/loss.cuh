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

// OneClass is the target of a row: its label.
struct OneClass {
  int c;

  // read returns whether the label of a row is a class.
  __device__ bool read(const float *labels, int row, int n, u32 *bad, int lane) {
    c = class_of(labels, row, n, bad, lane);
    return c >= 0;
  }

  // whole returns whether class j has all weight.
  __device__ bool whole(int j) const { return j == c; }

  // weight returns the weight of class j, unless that is whole.
  __device__ double weight(int) const { return 0.0; }

  // ahead returns by how much the logit of the label exceeds the largest.
  __device__ double ahead(const float *x, double top) const { return (double)x[c] - top; }
};

// TwoClasses is the target of a row with two labels: class c has weight w, class p the rest.
struct TwoClasses {
  int c, p;
  double w;

  __device__ bool read(const float *labels, int row, int n, u32 *bad, int lane) {
    float v[2];
    int of[2];
    for (int k = 0; k < 2; k++) {
      v[k] = labels[3 * row + k];
      of[k] = v[k] >= 0.0f && v[k] < (float)n ? (int)v[k] : -1;
      if (of[k] >= 0 && (float)of[k] == v[k]) continue;
      if (lane == 0) atomicMin(bad, (u32)row);
      return false;
    }
    c = of[0], p = of[1];
    w = c == p ? 1.0 : (double)labels[3 * row + 2];
    return true;
  }
  __device__ bool whole(int j) const { return j == c && w == 1.0; }
  __device__ double weight(int j) const { return j == c ? w : j == p ? 1.0 - w : 0.0; }
  __device__ double ahead(const float *x, double top) const {
    const double first = (double)x[c] - top;
    return w == 1.0 ? first : w * first + (1.0 - w) * ((double)x[p] - top);
  }
};

// cross_entropy_of: the loss of each row, and the derivative of the mean over the m rows of an
// agent. Logits and gradients of consecutive agents are `stride` numbers apart; labels are
// contiguous. The targets are s/n, plus 1-s at the label. *bad becomes the first row whose label is
// not a class, if that is less.
template <class Target, class Block>
__device__ inline void cross_entropy_of(const Block &block, double *row_loss, float *dlogits, const float *logits,
                                        const float *labels, u32 *bad, int rows, int m, int n, i64 stride, double s) {
  const int lane = block.thread() % LANES;
  const int row = (int)(block.index() / LANES);
  const bool mine = row < rows; // all lanes stay, because they meet in the trees
  const i64 at = mine ? row / m * stride + (i64)(row % m) * n : 0;
  const float *x = logits + at;
  float *d = dlogits + at;
  Target t;
  const bool known = mine && t.read(labels, row, n, bad, lane);
  float top = top_of(x, n, lane);
  double sum = exponentials(mine ? d : (float *)0, x, n, (double)top, lane);
  double below = 0.0, each = s / (double)n, per_row = 1.0 / (double)m;
  if (s != 0.0) {
    // Unrolled, the loop makes the compiler spill registers around the divisions below.
#pragma unroll 1
    for (int j = lane; j < n; j += LANES) below = below + ((double)x[j] - (double)top);
    below = tree(below);
  }
  if (!known) return;
  // At the label, p-1 is computed before rounding: it is all that remains of the gradient when p is
  // close to 1.
  double scale = per_row / sum;
  for (int j = lane; j < n; j += LANES) {
    double e = (double)d[j];
    if (s != 0.0) {
      const double w = t.weight(j);
      double p = t.whole(j) ? (e - sum) / sum + s : w != 0.0 ? (e - w * sum) / sum + s * w : e / sum;
      d[j] = (float)((p - each) * per_row);
    } else {
      const double w = t.weight(j);
      d[j] = (float)((t.whole(j) ? e - sum : w != 0.0 ? e - w * sum : e) * scale);
    }
  }
  if (lane == 0) {
    double ahead = t.ahead(x, (double)top);
    row_loss[row] = s != 0.0 ? logarithm(sum) - (1.0 - s) * ahead - each * below : logarithm(sum) - ahead;
  }
}

BODY softmax_cross_entropy_of(const Block &block, double *row_loss, float *dlogits, const float *logits,
                              const float *labels, u32 *bad, int rows, int m, int n, i64 stride, double s) {
  cross_entropy_of<OneClass>(block, row_loss, dlogits, logits, labels, bad, rows, m, n, stride, s);
}
