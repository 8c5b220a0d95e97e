// Softmax and cross entropy of many classes, with logits and their gradient of 16 bits, in float32. A
// block has a row, the first 57,344 logits of which stay in its registers. Its threads compute a sum of
// exponentials each, relative to their largest logit, which are combined in a tree of fixed order; then
// they compute the gradient.
#include "half.cuh"
#include "loss.cuh"
#include "power.cuh"
#include "scaler.cuh"

#define WIDE_THREADS 1024 // kernels.wideLossThreads
#define WIDE_KEPT 7       // packs of a thread in registers
#define LOG2_E 0x1.715476p0f
#define LEAST -0x1.fffffep127f

// Exponentials is the largest of some logits times log2(e), rounded, the sum of 2^(x·log2(e) - top),
// and the sum of the logits.
struct Exponentials {
  float top, sum;
  double all;

  __device__ void add(const Exponentials &o) {
    const float most = fmaxf(top, o.top);
    sum = sum * below(top, most) + o.sum * below(o.top, most);
    top = most;
    all = all + o.all;
  }

  // below returns 2^(top - most) for top ≤ most.
  __device__ static float below(float top, float most) { return power(top - most); }

  // of returns the exponential of a logit: 2^(x·log2(e) - top).
  __device__ float of(float x) const { return power(fmaf(x, LOG2_E, -top)); }

  // add adds a pack of logits. The first `summed` of them are part of the sum of the logits.
  template <class T> __device__ void add(const Pack<T> &x, int summed) {
    float most = x.v[0];
#pragma unroll
    for (int j = 1; j < 8; j++) most = fmaxf(most, x.v[j]);
    const float before = top;
    top = fmaxf(top, most * LOG2_E);
    sum = sum * below(before, top);
    float part[8];
#pragma unroll
    for (int j = 0; j < 8; j++) part[j] = of(x.v[j]);
    sum = sum + (((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7])));
    if (summed > 0)
      for (int j = 0; j < 8; j++)
        if (j < summed) all = all + (double)x.v[j];
  }
};

// WidePack is a pack in four registers. What is unpacked lies in eight.
template <class T> union WidePack {
  uint4 words;
  RawPack<T> raw;
};

// unpack converts the numbers at each use: the compiler must not keep them in registers.
template <class T> __device__ inline Pack<T> unpack(uint4 words) {
#ifndef FSPDA_HOST
  asm volatile("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
#endif
  return unpack(WidePack<T>{words}.raw);
}

// Logits is a row of n of them.
template <class T> struct Logits {
  const T *x;
  int n;

  // eight returns eight from i on, and -∞ behind the end.
  __device__ uint4 eight(int i) const {
    if (i + 8 <= n) return *(const uint4 *)(x + i);
    WidePack<T> p;
#pragma unroll
    for (int j = 0; j < 8; j++) p.raw.v[j] = i + j < n ? x[i + j] : Number<T>::from(__uint_as_float(0xff800000u));
    return p.words;
  }
};

// over_warp combines the numbers of all lanes.
__device__ inline Exponentials over_warp(Exponentials e) {
#pragma unroll
  for (int by = WARP / 2; by > 0; by /= 2) {
    const Exponentials o{__shfl_xor_sync(ALL_LANES, e.top, by), __shfl_xor_sync(ALL_LANES, e.sum, by),
                         __shfl_xor_sync(ALL_LANES, e.all, by)};
    e.add(o);
  }
  return e;
}

// wide_cross_entropy: the arguments are those of softmax_cross_entropy of loss.cuh for one agent, for
// rows from `first_row` on, of which logits and dlogits have these only. Rows have `padded` numbers. scaler
// may be null.
template <class T>
__device__ inline void wide_cross_entropy(double *row_loss, T *dlogits, const T *logits, const float *labels, u32 *bad,
                                          int m, int n, int padded, int first_row, double s, const Scaler *scaler) {
  __shared__ Exponentials of_warp[WIDE_THREADS / WARP];
  const int row = first_row + (int)blockIdx.x, thread = (int)threadIdx.x, lane = thread % WARP;
  const int c = class_of(labels, row, n, bad, thread);
  if (c < 0) return; // all threads
  const Logits<T> x{logits + (i64)blockIdx.x * padded, n};
  T *d = dlogits + (i64)blockIdx.x * padded;
  const int first = 8 * thread, step = 8 * WIDE_THREADS;
  uint4 kept[WIDE_KEPT];
#pragma unroll
  for (int k = 0; k < WIDE_KEPT; k++)
    if (first + k * step < n) kept[k] = x.eight(first + k * step);
  const float label = to_float(x.x[c]);
  Exponentials e{LEAST, 0.0f, 0.0};
#pragma unroll
  for (int k = 0; k < WIDE_KEPT; k++)
    if (first + k * step < n) e.add(unpack<T>(kept[k]), s != 0.0 ? n - (first + k * step) : 0);
  for (int i = first + WIDE_KEPT * step; i < n; i += step) e.add(unpack<T>(x.eight(i)), s != 0.0 ? n - i : 0);
  e = over_warp(e);
  if (lane == 0) of_warp[thread / WARP] = e;
  __syncthreads(); // d may be x
  e = over_warp(of_warp[lane]);
  const float scale = (scaler ? scaler->scale : 1.0f) / (float)m, inverse = 1.0f / e.sum;
  const float each = (float)(s / (double)n), times = inverse * scale, less = -each * scale;
  // write computes the gradient of a pack.
  const auto write = [&](int i, uint4 words) {
    Pack<T> v = unpack<T>(words);
#pragma unroll
    for (int j = 0; j < 8; j++) v.v[j] = fmaf(e.of(v.v[j]), times, less);
    if (i + 8 > n)
#pragma unroll
      for (int j = 0; j < 8; j++)
        if (i + j >= n) v.v[j] = 0.0f;
    store_pack(d + i, v, 8, true);
    if (c / 8 == i / 8) d[c] = Number<T>::from((fmaf(e.of(label) - e.sum, inverse, (float)s) - each) * scale);
  };
#pragma unroll
  for (int k = 0; k < WIDE_KEPT; k++)
    if (first + k * step < padded) write(first + k * step, kept[k]);
  for (int i = first + WIDE_KEPT * step; i < padded; i += step) write(i, x.eight(i));
  if (thread != 0) return;
  const double ahead = ((double)label * LOG2_E - (double)e.top) * LN2, sum = logarithm((double)e.sum);
  const double mean = (e.all / (double)n * LOG2_E - (double)e.top) * LN2;
  row_loss[row] = s != 0.0 ? sum - (1.0 - s) * ahead - s * mean : sum - ahead;
}

// mean_loss writes the mean of m losses, rounded. A thread adds every WIDE_THREADS-th of them; sums are
// added in a tree.
KERNEL(WIDE_THREADS) mean_loss(float *loss, const double *row_loss, int m) {
  __shared__ double of_warp[WIDE_THREADS / WARP];
  const int thread = (int)threadIdx.x;
  double sum = 0.0;
#pragma unroll 4
  for (int i = thread; i < m; i += WIDE_THREADS) sum = sum + row_loss[i];
  for (int by = WARP / 2; by > 0; by /= 2) sum = sum + __shfl_down_sync(ALL_LANES, sum, by);
  if (thread % WARP == 0) of_warp[thread / WARP] = sum;
  __syncthreads();
  sum = of_warp[thread % WARP];
  for (int by = WARP / 2; by > 0; by /= 2) sum = sum + __shfl_down_sync(ALL_LANES, sum, by);
  if (thread == 0) *loss = (float)(sum / (double)m);
}

#define WIDE_KERNELS(T, suffix)                                                                                        \
  KERNEL(WIDE_THREADS)                                                                                                 \
  wide_cross_entropy_##suffix(double *row_loss, T *dlogits, const T *logits, const float *labels, u32 *bad, int m,     \
                              int n, int padded, int first_row, double s, const Scaler *scaler) {                      \
    wide_cross_entropy<T>(row_loss, dlogits, logits, labels, bad, m, n, padded, first_row, s, scaler);                 \
  }

WIDE_KERNELS(Half, f16)
WIDE_KERNELS(BFloat, bf16)
