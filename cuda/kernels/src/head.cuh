// The rows of a small network's last layers: see head_of.
#pragma once
#include "gemm.cuh"
#include "loss.cuh"

#define HEAD_THREADS 256
#define HEAD_ROWS 3                            // rows that a warp computes at the same time
#define HEAD_PAIRS ((HEAD_ROWS + 1) / 2)       // of rows
#define HEAD_CLASSES 16                        // the most classes: lanes 2·c and 2·c + 1 have class c
#define HEAD_FEW 8                             // classes that are computed without asking whether they are there
#define HEAD_COLUMNS (4 * WARP)                // of h, of which a lane has four
#define HEAD_PARTS 3                           // summands that are loaded at once, besides the first
#define HEAD_WARPS (HEAD_THREADS / WARP)

// near_sigmoid returns 1/(1+e^-x), for x clamped to at least -87, with an error below 1.5 units in the
// last place. NaN stays NaN. It takes a third of the time of sigmoid_of. With e = e^-|x| the result is
// 1/(1+e) or e/(1+e), whose remainder is divided too.
__device__ inline float near_sigmoid(float x) {
  const float one = 0x1.8p23f; // adding it moves the nearest integer into the low bits
  float a = x < 0.0f ? x : -x;
  if (a < -87.0f) a = -87.0f;
  const float t = fmaf(a, 0x1.715476p0f, one), n = t - one;
  const float r = fmaf(n, 0x1.05c61p-29f, fmaf(n, -0x1.62e43p-1f, a)); // a - n·ln 2
  float p = fmaf(r, 1.0f / 5040, 1.0f / 720);
  p = fmaf(p, r, 1.0f / 120);
  p = fmaf(p, r, 1.0f / 24);
  p = fmaf(p, r, 1.0f / 6);
  p = fmaf(p, r, 1.0f / 2);
  const float e = (1.0f + fmaf(r * r, p, r)) * __uint_as_float((__float_as_uint(t) << 23) + 0x3f800000u);
  const float d = 1.0f + e, low = e - (d - 1.0f), top = x < 0.0f ? e : 1.0f;
  float inverse = fmaf(d, -8.0f / 17, 24.0f / 17);
#pragma unroll
  for (int i = 0; i < 3; i++) inverse = fmaf(inverse, fmaf(-d, inverse, 1.0f), inverse);
  const float q = top * inverse;
  return fmaf(fmaf(-low, q, fmaf(-d, q, top)), inverse, q);
}

// lanes_tree adds the numbers of every other lane, in the order of tree in loss.cuh.
__device__ inline double lanes_tree(double s) {
#pragma unroll
  for (int apart = WARP / 2; apart > 1; apart /= 2) s = s + __shfl_xor_sync(ALL_LANES, s, apart);
  return s;
}

// HeadRows is rows first, first + HEAD_WARPS, … below end, of an agent's batch of m, of a warp. Where lanes
// have a pair of rows, even lanes have the first, and odd lanes the second.
struct HeadRows {
  int first, end, m, lane;
  __device__ bool there(int r) const { return r < HEAD_ROWS && first + r * HEAD_WARPS < end; }
  // at returns row r, or the first one where it is not there.
  __device__ int at(int r) const { return there(r) ? first + r * HEAD_WARPS : first; }
  // own returns the number that lane r has of row r.
  template <class T> __device__ T own(const T (&pairs)[HEAD_PAIRS]) const {
    T mine = pairs[0];
#pragma unroll
    for (int q = 1; q < HEAD_PAIRS; q++)
      if (lane / 2 == q) mine = pairs[q];
    return mine;
  }
  // of_pair returns to the lanes of each row of a pair the number that lane r has of row r.
  template <class T> __device__ T of_pair(T own, int q) const {
    return __shfl_sync(ALL_LANES, own, 2 * q + lane % 2);
  }
};

// class_sums returns the sum of z[c] over all lanes, where c is lane / 2: lanes that are N·2 apart
// exchange N of their 2·N classes.
template <int N> __device__ inline float class_sums(const float (&z)[2 * N], int lane) {
  const bool upper = lane & 2 * N;
  float s[N];
#pragma unroll
  for (int c = 0; c < N; c++) {
    const float other = __shfl_xor_sync(ALL_LANES, upper ? z[c] : z[c + N], 2 * N);
    s[c] = (upper ? z[c + N] : z[c]) + other;
  }
  if constexpr (N > 1)
    return class_sums<N / 2>(s, lane);
  else
    return s[0] + __shfl_xor_sync(ALL_LANES, s[0], 1);
}

// row_losses is softmax_cross_entropy for the logits z of n classes, of pairs of rows. label is the
// class of the row of the lane, or -1. It makes z the gradient.
__device__ inline void row_losses(float (&z)[HEAD_PAIRS], const HeadRows &rows, int n, int label, double s,
                                  double *row_loss) {
  const int lane = rows.lane, c = lane / 2;
  const double per_row = 1.0 / (double)rows.m;
  double most[HEAD_PAIRS], e[HEAD_PAIRS], all[HEAD_PAIRS], ahead[HEAD_PAIRS];
  int labels[HEAD_PAIRS];
#pragma unroll
  for (int q = 0; q < HEAD_PAIRS; q++) {
    float top = __uint_as_float(0xff800000u); // -infinity
    if (c < n && z[q] > top) top = z[q];
#pragma unroll
    for (int apart = WARP / 2; apart > 1; apart /= 2) {
      const float other = __shfl_xor_sync(ALL_LANES, top, apart);
      if (other > top) top = other;
    }
    labels[q] = rows.of_pair(label, q);
    most[q] = top == 0.0f ? 0.0 : (double)top;
    ahead[q] = (double)__shfl_sync(ALL_LANES, z[q], (labels[q] < 0 ? 0 : 2 * labels[q]) + lane % 2) - most[q];
  }
#pragma unroll
  for (int q = 0; q < HEAD_PAIRS; q++) e[q] = c < n ? exponential((double)z[q] - most[q]) : 0.0;
#pragma unroll
  for (int q = 0; q < HEAD_PAIRS; q++) {
    all[q] = lanes_tree(e[q]);
    e[q] = (double)(float)e[q];
  }
  const double mine = rows.own(all), scale = per_row / mine;
  double loss = logarithm(mine);
  if (s == 0.0) {
    loss = loss - rows.own(ahead);
#pragma unroll
    for (int q = 0; q < HEAD_PAIRS; q++)
      z[q] = (float)((c == labels[q] ? e[q] - all[q] : e[q]) * rows.of_pair(scale, q));
  } else {
    const double each = s / (double)n;
    double below[HEAD_PAIRS];
#pragma unroll
    for (int q = 0; q < HEAD_PAIRS; q++) {
      below[q] = lanes_tree(c < n ? (double)z[q] - most[q] : 0.0);
      const double p = (c == labels[q] ? e[q] - all[q] : e[q]) / all[q];
      z[q] = (float)(((c == labels[q] ? p + s : p) - each) * per_row);
    }
    loss = loss - (1.0 - s) * rows.own(ahead) - each * rows.own(below);
  }
#pragma unroll
  for (int q = 0; q < HEAD_PAIRS; q++)
    if (c >= n) z[q] = 0.0f;
  if (rows.there(lane) && label >= 0) row_loss[rows.at(lane)] = loss;
}

// load_weights loads four columns of the weights of each class. The sums of classes behind the last are not
// read, nor their gradients added: where there are few, they have the weights of the last class and gradients
// of zero, and conditions would keep loads from being in flight together.
ALWAYS_INLINE void load_weights(Four (&to)[HEAD_CLASSES], const float *from, int width, int classes) {
#pragma unroll
  for (int c = 0; c < HEAD_CLASSES; c++) to[c] = load4(from + (u32)(c < classes ? c : classes - 1) * (u32)width);
}

// head_of computes what depends on one row of a batch only: for `rows` rows of an agent, the output
// h of the last hidden layer, from the `parts` summands of its products (none: h is there), the
// logits, the loss and its gradient dz, and the gradient dh of what the activation of h takes.
//
// The first layers' epilogue makes h of the sums, with aux its bias; back, SIGMOID_GRAD or
// RELU_GRAD, makes dh of the products. w is classes×width. Rows of an agent are contiguous in
// labels and row_loss. *bad becomes the first row whose label is not a class, if that is less.
//
// A warp computes HEAD_ROWS rows at the same time, and needs no other. A lane has four numbers of a
// row of h, so that width must be a multiple of four, and h, w, dh and part aligned to 16 bytes. It sums
// its products for each class, and the lanes' sums are added in a tree.
BODY head_of(const Block &block, const float *part, int parts, OPERAND(const float, aux), int epilogue,
             OPERAND(float, h), OPERAND(const float, w), OPERAND(const float, bias), const float *labels, u32 *bad,
             double *row_loss, OPERAND(float, dz), OPERAND(float, dh), int back, int m, int rows, int width,
             int classes, double s) {
  const int lane = block.thread() % WARP, end = m - (int)block.x() * rows < rows ? m : ((int)block.x() + 1) * rows;
  const u32 size = (u32)m * (u32)width;
  const float *p = part + (i64)block.z() * parts * size, *weights = AGENT(block, w), *b = AGENT(block, bias);
  const float *before = AGENT(block, aux);
  float *hidden = AGENT(block, h), *d = AGENT(block, dz), *dx = AGENT(block, dh);
  const i64 of_agent = (i64)block.z() * m;
#pragma unroll 1
  for (int first = block.x() * rows + block.thread() / WARP; first < end; first += HEAD_ROWS * HEAD_WARPS) {
    const HeadRows at = {first, end, m, lane};
    const int label = at.there(lane) ? class_of(labels, (int)of_agent + at.at(lane), classes, bad, 0) : -1;
    const float added = b[lane / 2 < classes ? lane / 2 : 0];
    Four y[HEAD_ROWS], weight[HEAD_CLASSES]; // the lane's columns
    float sums[HEAD_ROWS][HEAD_CLASSES] = {}, z[HEAD_PAIRS];
#pragma unroll 1
    for (int columns = 0; columns < width; columns += HEAD_COLUMNS) {
      const int j = columns + 4 * lane, from = j < width ? j : width - 4;
      const float *first_part = parts ? p : hidden;
#pragma unroll
      for (int r = 0; r < HEAD_ROWS; r++) y[r] = load4(first_part + (u32)at.at(r) * (u32)width + from);
#pragma unroll 1
      for (int q = 1; q < parts; q += HEAD_PARTS) {
        Four next[HEAD_PARTS][HEAD_ROWS];
#pragma unroll
        for (int e = 0; e < HEAD_PARTS; e++)
#pragma unroll
          for (int r = 0; r < HEAD_ROWS; r++)
            next[e][r] = load4(p + (i64)(q + e < parts ? q + e : q) * size + (u32)at.at(r) * (u32)width + from);
#pragma unroll
        for (int e = 0; e < HEAD_PARTS; e++)
#pragma unroll
          for (int r = 0; r < HEAD_ROWS; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
              if (q + e < parts) y[r].v[i] = next[e][r].v[i] + y[r].v[i];
      }
      load_weights(weight, weights + from, width, classes); // while the activations are computed
      if (parts) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const float add = before[from + i];
#pragma unroll
          for (int r = 0; r < HEAD_ROWS; r++) {
            const float sum = y[r].v[i] + add;
            y[r].v[i] = epilogue == BIAS_SIGMOID ? near_sigmoid(sum) : relu_of(sum);
          }
        }
      }
      if (j >= width)
#pragma unroll
        for (int r = 0; r < HEAD_ROWS; r++) y[r] = {};
#pragma unroll
      for (int c = 0; c < HEAD_CLASSES; c++) {
        if (c >= HEAD_FEW && c >= classes) continue;
#pragma unroll
        for (int r = 0; r < HEAD_ROWS; r++)
#pragma unroll
          for (int i = 0; i < 4; i++) sums[r][c] = fmaf(y[r].v[i], weight[c].v[i], sums[r][c]);
      }
      if (parts && j < width)
#pragma unroll
        for (int r = 0; r < HEAD_ROWS; r++)
          if (at.there(r)) store4(hidden + (u32)at.at(r) * (u32)width + j, y[r]);
    }
#pragma unroll
    for (int r = 0; r < HEAD_ROWS; r++) {
      const float sum = class_sums<HEAD_CLASSES / 2>(sums[r], lane) + added;
      if (r % 2 == 0 || lane % 2) z[r / 2] = sum;
    }
    row_losses(z, at, classes, label, s, row_loss + of_agent);
#pragma unroll
    for (int q = 0; q < HEAD_PAIRS; q++)
      if (at.there(2 * q + lane % 2) && lane / 2 < classes)
        d[at.at(2 * q + lane % 2) * classes + lane / 2] = z[q];
    // the columns from the last to the first: those of the last are still in registers
#pragma unroll 1
    for (int columns = (width - 1) / HEAD_COLUMNS * HEAD_COLUMNS;;) {
      const int j = columns + 4 * lane;
      load_weights(weight, weights + (j < width ? j : width - 4), width, classes);
      Four g[HEAD_ROWS] = {};
#pragma unroll
      for (int c = 0; c < HEAD_CLASSES; c++) {
        if (c >= HEAD_FEW && c >= classes) continue;
#pragma unroll
        for (int r = 0; r < HEAD_ROWS; r++) {
          const float each = __shfl_sync(ALL_LANES, z[r / 2], 2 * c + r % 2);
#pragma unroll
          for (int i = 0; i < 4; i++) g[r].v[i] = fmaf(each, weight[c].v[i], g[r].v[i]);
        }
      }
#pragma unroll
      for (int r = 0; r < HEAD_ROWS; r++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          const float of = y[r].v[i];
          g[r].v[i] = back == SIGMOID_GRAD ? (g[r].v[i] * of) * (1.0f - of) : of > 0.0f ? g[r].v[i] : 0.0f;
        }
        if (j < width && at.there(r)) store4(dx + (u32)at.at(r) * (u32)width + j, g[r]);
      }
      columns -= HEAD_COLUMNS;
      if (columns < 0) break;
#pragma unroll
      for (int r = 0; r < HEAD_ROWS; r++) y[r] = load4(hidden + (u32)at.at(r) * (u32)width + columns + 4 * lane);
    }
  }
}

// bias_gradient_of: db[j] = Σ dy[i][j] over m rows, in float64, plus factor·b[j] where b is not null. The
// order of the sum is that of ColumnLane.
BODY bias_gradient_of(const Block &block, OPERAND(float, db), OPERAND(const float, dy), OPERAND(const float, b),
                      float factor, int m, int n) {
  const ColumnLane lane(block);
  const int j = lane.column < n ? lane.column : n - 1;
  const float *p = AGENT(block, dy) + j, *w = AGENT(block, b);
  const float added = w ? w[j] : 0.0f;
  double s = 0.0;
#pragma unroll 1
  for (int i = lane.part; i < m; i += COLUMN_PARTS * COLUMN_AHEAD) {
    float v[COLUMN_AHEAD];
    lane.load(v, p, i, m, n);
#pragma unroll
    for (int e = 0; e < COLUMN_AHEAD; e++) s = s + (i + e * COLUMN_PARTS < m ? (double)v[e] : 0.0);
  }
  const float sum = (float)lane.add_parts(s);
  if (lane.part == 0 && lane.column < n) AGENT(block, db)[j] = w ? sum + factor * added : sum;
}
