// The rows of a small network's last layers: see head_of.
#pragma once
#include "gemm.cuh"
#include "loss.cuh"

#define HEAD_THREADS 256
#define HEAD_LANES 8       // threads of a row of logits
#define HEAD_NUMBERS 9216  // of shared memory
#define HEAD_EACH 8        // numbers of h that a thread computes at once
#define HEAD_PARTS 2       // summands that it loads at once, besides the first

struct HeadMemory {
  __align__(16) float v[HEAD_NUMBERS];
};

// eight_tree is tree of loss.cuh where a thread holds the sums of two lanes: its own and that of
// the lane HEAD_LANES further.
__device__ inline double eight_tree(double own, double further) {
  double s = own + further;
#pragma unroll
  for (int half = HEAD_LANES / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half, HEAD_LANES);
  return __shfl_sync(ALL_LANES, s, 0, HEAD_LANES);
}

// row_loss_of is softmax_cross_entropy for a row of at most PIECE logits in shared memory. It
// writes the gradient over them.
__device__ inline void row_loss_of(float *x, int n, int c, bool mine, double per_row, double s, double *row_loss,
                                   int lane) {
  float top = __uint_as_float(0xff800000u); // -infinity
  if (mine)
    for (int j = lane; j < n; j += HEAD_LANES)
      if (x[j] > top) top = x[j];
#pragma unroll
  for (int half = HEAD_LANES / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(ALL_LANES, top, half, HEAD_LANES);
    if (other > top) top = other;
  }
  const double most = top == 0.0f ? 0.0 : (double)top;
  const float at_label = mine && c >= 0 ? x[c] : 0.0f;
  double sum[2] = {0.0, 0.0}, below[2] = {0.0, 0.0};
  __syncwarp(); // the logits are overwritten
  if (mine)
    for (int j = lane, i = 0; j < n; j += HEAD_LANES, i ^= 1) {
      const double away = (double)x[j] - most, e = exponential(away);
      if (i == 0)
        sum[0] = sum[0] + e, below[0] = below[0] + away;
      else
        sum[1] = sum[1] + e, below[1] = below[1] + away;
      x[j] = (float)e;
    }
  const double all = 0.0 + eight_tree(sum[0], sum[1]), deficit = eight_tree(below[0], below[1]);
  if (c < 0 || !mine) return;
  const double each = s / (double)n, scale = per_row / all;
  for (int j = lane; j < n; j += HEAD_LANES) {
    const double e = (double)x[j];
    if (s != 0.0) {
      const double p = j == c ? (e - all) / all + s : e / all;
      x[j] = (float)((p - each) * per_row);
    } else {
      x[j] = (float)((j == c ? e - all : e) * scale);
    }
  }
  if (lane == 0) {
    const double ahead = (double)at_label - most;
    *row_loss = s != 0.0 ? logarithm(all) - (1.0 - s) * ahead - each * deficit : logarithm(all) - ahead;
  }
}

// head_of computes what depends on one row of a batch only: for `rows` rows of an agent, the output
// h of the last hidden layer, from the `parts` summands of its products (none: h is there), the
// logits, the loss and its gradient dz, and the gradient dh of what the activation of h takes.
//
// The first layers' epilogue makes h of the sums, with aux its bias; back, SIGMOID_GRAD or
// RELU_GRAD, makes dh of the products. w is classes×width. Rows of an agent are contiguous in
// labels and row_loss. *bad becomes the first row whose label is not a class, if that is less.
BODY head_of(const Block &block, const float *part, int parts, OPERAND(const float, aux), int epilogue,
             OPERAND(float, h), OPERAND(const float, w), OPERAND(const float, bias), const float *labels, u32 *bad,
             double *row_loss, OPERAND(float, dz), OPERAND(float, dh), int back, int m, int rows, int width,
             int classes, double s) {
  const int stride = 4 * ((width + 3) / 4 | 1); // fours of consecutive rows lie in different banks
  float *sw = shared_of<HeadMemory>(block).v, *sh = sw + classes * stride, *sz = sh + rows * stride;
  const int thread = block.thread(), first = block.x() * rows, count = m - first < rows ? m - first : rows;
  const int all = count * width;
  const i64 from = (i64)first * width;
  const float *p = part + (i64)block.z() * parts * m * width + from;
  float *mine = AGENT(block, h) + from;
  const float *weights = AGENT(block, w);
  block.sync();
  for (int i = thread; i < classes * width; i += HEAD_THREADS) sw[i / width * stride + i % width] = weights[i];
  // Numbers behind the last are read as the last, since loads with conditions are not all in flight.
  const float *first_part = parts ? p : mine;
  for (int begin = thread; begin < all; begin += HEAD_THREADS * HEAD_EACH) {
    float v[HEAD_EACH], next[HEAD_PARTS][HEAD_EACH];
    u32 at[HEAD_EACH];
#pragma unroll
    for (int e = 0; e < HEAD_EACH; e++) {
      const int i = begin + e * HEAD_THREADS;
      at[e] = (u32)(i < all ? i : all - 1);
      v[e] = first_part[at[e]];
    }
    for (int c = 1; c < parts; c += HEAD_PARTS) {
#pragma unroll
      for (int q = 0; q < HEAD_PARTS; q++) {
        const float *summand = p + (i64)(c + q < parts ? c + q : parts - 1) * m * width;
#pragma unroll
        for (int e = 0; e < HEAD_EACH; e++) next[q][e] = summand[at[e]];
      }
#pragma unroll
      for (int q = 0; q < HEAD_PARTS; q++)
#pragma unroll
        for (int e = 0; e < HEAD_EACH; e++)
          if (c + q < parts) v[e] = next[q][e] + v[e];
    }
#pragma unroll
    for (int e = 0; e < HEAD_EACH; e++) {
      const int i = begin + e * HEAD_THREADS;
      if (i < all) sh[i / width * stride + i % width] = v[e];
    }
  }
  // The activations have a loop of their own, which is less code than HEAD_EACH of them above. A thread
  // reads what it has written.
  if (parts) {
    const float *b = AGENT(block, aux);
#pragma unroll 2
    for (int i = thread; i < all; i += HEAD_THREADS) {
      float &v = sh[i / width * stride + i % width];
      const float sum = v + b[i % width];
      v = epilogue == BIAS_SIGMOID ? sigmoid_of(sum) : epilogue == BIAS_RELU ? relu_of(sum) : sum;
      mine[i] = v;
    }
  }
  block.sync();
  const float *b = AGENT(block, bias);
  for (int o = thread; o < count * classes; o += HEAD_THREADS) {
    const float *x = sh + o / classes * stride, *y = sw + o % classes * stride;
    float z = 0.0f;
    int k = 0;
#pragma unroll 4
    for (; k + 4 <= width; k += 4) {
      const Four u = load4(x + k), v = load4(y + k);
#pragma unroll
      for (int j = 0; j < 4; j++) z = fmaf(u.v[j], v.v[j], z);
    }
    for (; k < width; k++) z = fmaf(x[k], y[k], z);
    sz[o] = z + b[o % classes];
  }
  block.sync();
  const int row = thread / HEAD_LANES, lane = thread % HEAD_LANES;
  const bool there = row < count;
  const i64 global_row = (i64)block.z() * m + first + row;
  const int c = there ? class_of(labels, (int)global_row, classes, bad, lane) : -1;
  row_loss_of(sz + row * classes, classes, c, there, 1.0 / (double)m, s, row_loss + global_row, lane);
  block.sync();
  float *d = AGENT(block, dz) + (i64)first * classes, *dx = AGENT(block, dh) + from;
  for (int o = thread; o < count * classes; o += HEAD_THREADS) d[o] = sz[o];
#pragma unroll 2
  for (int i = thread; i < all; i += HEAD_THREADS) {
    const int r = i / width, j = i % width;
    float g = 0.0f;
    for (int k = 0; k < classes; k++) g = fmaf(sz[r * classes + k], sw[k * stride + j], g);
    const float y = sh[r * stride + j];
    dx[i] = back == SIGMOID_GRAD ? (g * y) * (1.0f - y) : y > 0.0f ? g : 0.0f;
  }
}

#define SUM_AHEAD 32 // numbers of a column that a thread has in flight

// bias_gradient_of: db[j] = Σ dy[i][j] over m rows, in float64 and in order, plus factor·b[j] where
// b is not null. Whole batches of rows have no conditions: with them, the compiler has only a few of
// the loads in flight.
BODY bias_gradient_of(const Block &block, OPERAND(float, db), OPERAND(const float, dy), OPERAND(const float, b),
                      float factor, int m, int n) {
  const int j = (int)block.index();
  if (j >= n) return;
  const float *p = AGENT(block, dy) + j, *w = AGENT(block, b);
  double s = 0.0;
  int i = 0;
#pragma unroll 1
  for (; i + SUM_AHEAD <= m; i += SUM_AHEAD) {
    float v[SUM_AHEAD];
#pragma unroll
    for (int e = 0; e < SUM_AHEAD; e++) v[e] = p[(u32)(i + e) * (u32)n];
#pragma unroll
    for (int e = 0; e < SUM_AHEAD; e++) s = s + (double)v[e];
  }
#pragma unroll 1
  for (; i < m; i++) s = s + (double)p[(u32)i * (u32)n];
  const float sum = (float)s;
  AGENT(block, db)[j] = w ? sum + factor * w[j] : sum;
}
