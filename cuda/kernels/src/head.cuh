// The rows of a small network's last layers: see head_of.
#pragma once
#include "gemm.cuh"
#include "loss.cuh"

#define HEAD_THREADS 256
#define HEAD_WARPS (HEAD_THREADS / WARP)
#define HEAD_EACH 3                            // rows of a warp that are computed at the same time
#define HEAD_ROWS (HEAD_EACH * HEAD_WARPS)     // rows of a block that are computed at the same time
#define HEAD_CLASSES 16                        // the most classes
#define HEAD_LANES 8                           // lanes of a row's losses: lane c has classes c and c + 8
#define HEAD_COLUMNS (4 * WARP)                // of h, of which a lane has four
#define HEAD_PARTS 5                           // summands that are loaded at once, besides the first

// HeadMemory is what a block shares: rows of h and of the weights, of which all numbers behind the last
// are 0, and gradients of logits.
struct HeadMemory {
  __align__(16) float h[HEAD_ROWS][HEAD_COLUMNS + 4]; // four more, so that rows lie in different banks
  float w[HEAD_CLASSES][HEAD_COLUMNS + 4];
  float dz[HEAD_ROWS][HEAD_CLASSES];
};

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

// lanes_sum adds the numbers of the lanes of a row, in the order of tree in loss.cuh.
__device__ inline double lanes_sum(double s) {
#pragma unroll
  for (int apart = HEAD_LANES / 2; apart > 0; apart /= 2) s = s + __shfl_xor_sync(ALL_LANES, s, apart);
  return s;
}

// row_losses is softmax_cross_entropy for a row of n logits, of which a lane has z[i], of class
// c + i·HEAD_LANES. label is the class of the row, or -1. It makes z the gradient, and returns the loss.
__device__ inline double row_losses(float (&z)[2], int c, int n, int label, double s, double per_row) {
  float top = __uint_as_float(0xff800000u); // -infinity
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (c + i * HEAD_LANES < n && z[i] > top) top = z[i];
#pragma unroll
  for (int apart = HEAD_LANES / 2; apart > 0; apart /= 2) {
    const float other = __shfl_xor_sync(ALL_LANES, top, apart);
    if (other > top) top = other;
  }
  const double most = top == 0.0f ? 0.0 : (double)top;
  const float of_label = __shfl_sync(ALL_LANES, label < HEAD_LANES ? z[0] : z[1], label, HEAD_LANES);
  const double ahead = (double)of_label - most;
  double e[2];
#pragma unroll
  for (int i = 0; i < 2; i++) e[i] = c + i * HEAD_LANES < n ? exponential((double)z[i] - most) : 0.0;
  const double all = lanes_sum(e[0] + e[1]), each = s / (double)n, scale = per_row / all;
  double loss = logarithm(all);
  if (s == 0.0) {
    loss = loss - ahead;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const double rounded = (double)(float)e[i];
      z[i] = (float)((c + i * HEAD_LANES == label ? rounded - all : rounded) * scale);
    }
  } else {
    double below[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      below[i] = c + i * HEAD_LANES < n ? (double)z[i] - most : 0.0;
      const double rounded = (double)(float)e[i];
      const double p = (c + i * HEAD_LANES == label ? rounded - all : rounded) / all;
      z[i] = (float)(((c + i * HEAD_LANES == label ? p + s : p) - each) * per_row);
    }
    loss = loss - (1.0 - s) * ahead - each * lanes_sum(below[0] + below[1]);
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (c + i * HEAD_LANES >= n) z[i] = 0.0f;
  return loss;
}

// rotate moves each offset to the place before. After HEAD_EACH times they are in order again.
__device__ inline void rotate(u32 (&row)[HEAD_EACH]) {
  const u32 first = row[0];
#pragma unroll
  for (int r = 1; r < HEAD_EACH; r++) row[r - 1] = row[r];
  row[HEAD_EACH - 1] = first;
}

// HeadWeights is a lane's four columns of the weights of two classes, warp and warp + HEAD_WARPS.
struct HeadWeights {
  Four v[2];
  // load loads columns j to j + 3. Conditions would keep loads from being in flight together.
  __device__ void load(const float *weights, int warp, int j, int width, int classes) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int c = warp + i * HEAD_WARPS;
      v[i] = load4(weights + (u32)(c < classes ? c : classes - 1) * (u32)width + (j < width ? j : width - 4));
    }
  }
  // share stores them, and 0 for what is not there.
  __device__ void share(HeadMemory &memory, int warp, int lane, int j, int width, int classes) const {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int c = warp + i * HEAD_WARPS;
      store4(&memory.w[c][4 * lane], c < classes && j < width ? v[i] : Four{});
    }
  }
};

// head_of computes what depends on one row of a batch only: for `rows` rows of an agent, the output
// h of the last hidden layer, from the `parts` summands of its products (none: h is there), the
// logits, the loss and its gradient dz, and the gradient dh of what the activation of h takes.
//
// The first layers' epilogue makes h of the sums, with aux its bias; back, SIGMOID_GRAD or
// RELU_GRAD, makes dh of the products. w is classes×width. Rows of an agent are contiguous in
// labels and row_loss. *bad becomes the first row whose label is not a class, if that is less.
//
// A lane makes four numbers of each of its warp's rows of h and of dh, so that width must be a multiple of
// four, and h, w, dh and part aligned to 16 bytes. HEAD_LANES lanes make the logits and the loss of a row.
// Loops are not unrolled where that only makes code longer: it is executed once, and fetching it takes time.
BODY head_of(const Block &block, const float *part, int parts, OPERAND(const float, aux), int epilogue,
             OPERAND(float, h), OPERAND(const float, w), OPERAND(const float, bias), const float *labels, u32 *bad,
             double *row_loss, OPERAND(float, dz), OPERAND(float, dh), int back, int m, int rows, int width,
             int classes, double s) {
  auto &memory = shared_of<HeadMemory>(block);
  const int warp = block.thread() / WARP, lane = block.thread() % WARP, begin = (int)block.x() * rows;
  const int end = m - begin < rows ? m : begin + rows;
  const u32 size = (u32)m * (u32)width, of_agent = block.z() * (u32)m;
  const float *p = part + (i64)(block.z() * (u32)parts) * size, *weights = AGENT(block, w), *b = AGENT(block, bias);
  const float *before = AGENT(block, aux);
  float *hidden = AGENT(block, h), *d = AGENT(block, dz), *dx = AGENT(block, dh);
  const double per_row = 1.0 / (double)m;
#pragma unroll 1
  for (int first = begin; first < end; first += HEAD_ROWS) {
    const int count = end - first; // more than HEAD_ROWS where others follow
    const int first_own = warp * (WARP / HEAD_LANES), own = first_own + lane / HEAD_LANES, c = lane % HEAD_LANES;
    const bool has_rows = first_own < HEAD_ROWS && first_own < count, has_own = has_rows && own < count;
    const int label = has_own ? class_of(labels, (int)of_agent + first + own, classes, bad, c) : -1;
    float z[2], sums[2][4] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) z[i] = b[c + i * HEAD_LANES < classes ? c + i * HEAD_LANES : 0];
    u32 row[HEAD_EACH]; // offsets of the lane's rows, or of the first where there are fewer
#pragma unroll
    for (int r = 0; r < HEAD_EACH; r++)
      row[r] = (u32)(first + (warp + r * HEAD_WARPS < count ? warp + r * HEAD_WARPS : 0)) * (u32)width;
    HeadWeights weight;
    int columns = 0;
#pragma unroll 1
    for (;; columns += HEAD_COLUMNS) {
      const int j = columns + 4 * lane, from = j < width ? j : width - 4;
      const float *first_part = in_register((parts ? p : hidden) + from);
      Four y[HEAD_EACH];
#pragma unroll
      for (int r = 0; r < HEAD_EACH; r++) y[r] = load4(first_part + row[r]);
      weight.load(weights, warp, j, width, classes);
      float add[4] = {};
      if (parts)
#pragma unroll
        for (int i = 0; i < 4; i++) add[i] = before[from + i];
#pragma unroll 1
      for (int q = 1; q < parts; q += HEAD_PARTS) {
        Four next[HEAD_PARTS][HEAD_EACH];
#pragma unroll
        for (int e = 0; e < HEAD_PARTS; e++)
#pragma unroll
          for (int r = 0; r < HEAD_EACH; r++)
            next[e][r] = load4(first_part + (i64)(q + e < parts ? q + e : q) * size + row[r]);
#pragma unroll
        for (int e = 0; e < HEAD_PARTS; e++)
#pragma unroll
          for (int r = 0; r < HEAD_EACH; r++)
#pragma unroll
            for (int i = 0; i < 4; i++)
              if (q + e < parts) y[r].v[i] = next[e][r].v[i] + y[r].v[i];
      }
      block.sync();
      weight.share(memory, warp, lane, j, width, classes);
#pragma unroll 1
      for (int r = 0; r < HEAD_EACH; r++) {
        if (parts)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            const float sum = y[0].v[i] + add[i];
            y[0].v[i] = epilogue == BIAS_SIGMOID ? near_sigmoid(sum) : relu_of(sum);
          }
        const int at = warp + r * HEAD_WARPS;
        store4(&memory.h[at][4 * lane], j < width ? y[0] : Four{});
        if (parts && j < width && at < count) store4(hidden + row[0] + j, y[0]);
#pragma unroll
        for (int l = 1; l < HEAD_EACH; l++) y[l - 1] = y[l];
        rotate(row);
      }
      block.sync();
      if (has_rows) {
        const int fours = (width - columns < HEAD_COLUMNS ? width - columns : HEAD_COLUMNS) / 4;
        const float *x = memory.h[own], *w0 = memory.w[c], *w1 = memory.w[c + HEAD_LANES];
#pragma unroll 1
        for (int f = 0; f < fours; f += 4)
#pragma unroll
          for (int e = f; e < f + 4; e++) {
            const Four of = load4(x + 4 * e), v0 = load4(w0 + 4 * e), v1 = load4(w1 + 4 * e);
#pragma unroll
            for (int i = 0; i < 4; i++) {
              sums[0][i] = fmaf(of.v[i], v0.v[i], sums[0][i]);
              sums[1][i] = fmaf(of.v[i], v1.v[i], sums[1][i]);
            }
          }
      }
      if (columns + HEAD_COLUMNS >= width) break;
    }
    if (has_rows) {
#pragma unroll
      for (int i = 0; i < 2; i++) z[i] = ((sums[i][0] + sums[i][1]) + (sums[i][2] + sums[i][3])) + z[i];
      const double loss = row_losses(z, c, classes, label, s, per_row);
      if (has_own) {
        if (c == 0 && label >= 0) row_loss[of_agent + first + own] = loss;
#pragma unroll
        for (int i = 0; i < 2; i++) {
          const int at = c + i * HEAD_LANES;
          memory.dz[own][at] = z[i];
          if (at < classes) d[(first + own) * classes + at] = z[i];
        }
      }
    }
    block.sync();
    // the columns from the last to the first: those of the last are still in shared memory
#pragma unroll 1
    for (;;) {
      const int j = columns + 4 * lane;
      Four g[HEAD_EACH] = {};
#pragma unroll 1
      for (int q = 0; q < classes; q += 4) {
        Four each[HEAD_EACH];
#pragma unroll
        for (int r = 0; r < HEAD_EACH; r++) each[r] = load4(&memory.dz[warp + r * HEAD_WARPS][q]);
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const Four of = load4(&memory.w[q + e][4 * lane]);
#pragma unroll
          for (int r = 0; r < HEAD_EACH; r++)
#pragma unroll
            for (int i = 0; i < 4; i++) g[r].v[i] = fmaf(each[r].v[e], of.v[i], g[r].v[i]);
        }
      }
#pragma unroll 1
      for (int r = 0; r < HEAD_EACH; r++) {
        const int at = warp + r * HEAD_WARPS;
        const Four y = load4(&memory.h[at][4 * lane]);
        if (back == SIGMOID_GRAD)
#pragma unroll
          for (int i = 0; i < 4; i++) g[0].v[i] = (g[0].v[i] * y.v[i]) * (1.0f - y.v[i]);
        else
#pragma unroll
          for (int i = 0; i < 4; i++) g[0].v[i] = y.v[i] > 0.0f ? g[0].v[i] : 0.0f;
        if (j < width && at < count) store4(dx + row[0] + j, g[0]);
#pragma unroll
        for (int l = 1; l < HEAD_EACH; l++) g[l - 1] = g[l];
        rotate(row);
      }
      columns -= HEAD_COLUMNS;
      if (columns < 0) break;
      weight.load(weights, warp, columns + 4 * lane, width, classes);
      block.sync();
      weight.share(memory, warp, lane, columns + 4 * lane, width, classes);
#pragma unroll
      for (int r = 0; r < HEAD_EACH; r++)
        store4(&memory.h[warp + r * HEAD_WARPS][4 * lane], load4(hidden + row[r] + columns + 4 * lane));
      block.sync();
    }
  }
}

// bias_gradient_of: db[j] = Σ dy[i][j] over m rows, in float64, plus factor·b[j] where b is not null. The
// order of the sum is that of ColumnLane.
BODY bias_gradient_of(const Block &block, OPERAND(float, db), OPERAND(const float, dy), OPERAND(const float, b),
                      float factor, int m, int n) {
  const ColumnLane lane(block);
  const int j = lane.column < n ? lane.column : n - 1;
  const float *p = in_register(AGENT(block, dy) + j), *w = AGENT(block, b);
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
