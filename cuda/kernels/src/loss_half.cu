// Softmax and cross entropy of many classes, with logits and their gradient of 16 bits, in float32. A
// block has a row. Its threads keep a running maximum and a sum of exponentials each, which are
// combined in a tree of fixed order; then they compute the gradient from the logits, which are likely
// in the cache.
#include "half.cuh"
#include "loss.cuh"
#include "power.cuh"
#include "scaler.cuh"

#define WIDE_THREADS 1024 // kernels.wideLossThreads
#define LOG2_E 0x1.715476p0f

// Exponentials is the largest of some logits, the sum of exp(x - top), and the sum of the logits.
struct Exponentials {
  float top, sum;
  double all;

  __device__ void add(const Exponentials &o) {
    const float most = fmaxf(top, o.top);
    sum = sum * below(top, most) + o.sum * below(o.top, most);
    top = most;
    all = all + o.all;
  }

  // below returns exp(x - most) for x ≤ most, also if both are -∞.
  __device__ static float below(float x, float most) { return x == most ? 1.0f : power((x - most) * LOG2_E); }
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

// wide_cross_entropy: the arguments are those of softmax_cross_entropy of loss.cuh for one agent. Rows
// have `padded` numbers. scaler may be null.
template <class T>
__device__ inline void wide_cross_entropy(double *row_loss, T *dlogits, const T *logits, const float *labels, u32 *bad,
                                          int m, int n, int padded, double s, const Scaler *scaler) {
  __shared__ Exponentials of_warp[WIDE_THREADS / WARP];
  const int row = (int)blockIdx.x, thread = (int)threadIdx.x, lane = thread % WARP;
  const int c = class_of(labels, row, n, bad, thread);
  if (c < 0) return; // all threads
  const T *x = logits + (i64)row * padded;
  T *d = dlogits + (i64)row * padded;
  Exponentials e{__uint_as_float(0xff800000u), 0.0f, 0.0};
#pragma unroll 2
  for (int i = 8 * thread; i < n; i += 8 * WIDE_THREADS) {
    const Pack<T> v = load_pack(x + i, 8, true);
    float top = e.top, sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; j++)
      if (i + j < n) top = fmaxf(top, v.v[j]);
#pragma unroll
    for (int j = 0; j < 8; j++)
      if (i + j < n) sum = sum + Exponentials::below(v.v[j], top);
    if (s != 0.0)
      for (int j = 0; j < 8; j++)
        if (i + j < n) e.all = e.all + (double)v.v[j];
    e.sum = fmaf(e.sum, Exponentials::below(e.top, top), sum);
    e.top = top;
  }
  e = over_warp(e);
  if (lane == 0) of_warp[thread / WARP] = e;
  __syncthreads();
  e = over_warp(of_warp[lane]);
  const float label = to_float(x[c]);
  __syncthreads(); // d may be x
  const float scale = (scaler ? scaler->scale : 1.0f) / (float)m, inverse = 1.0f / e.sum;
  const float each = (float)(s / (double)n), target = (float)s;
#pragma unroll 2
  for (int i = 8 * thread; i < padded; i += 8 * WIDE_THREADS) {
    Pack<T> v = load_pack(x + i, 8, true);
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const float p = Exponentials::below(v.v[j], e.top);
      const float off = i + j == c ? fmaf(p - e.sum, inverse, target) : p * inverse;
      v.v[j] = i + j < n ? (off - each) * scale : 0.0f;
    }
    store_pack(d + i, v, 8, true);
  }
  if (thread != 0) return;
  const double ahead = (double)label - (double)e.top, sum = logarithm((double)e.sum);
  row_loss[row] = s != 0.0 ? sum - (1.0 - s) * ahead - s * (e.all / (double)n - (double)e.top) : sum - ahead;
}

#define WIDE_KERNELS(T, suffix)                                                                                        \
  KERNEL(WIDE_THREADS)                                                                                                 \
  wide_cross_entropy_##suffix(double *row_loss, T *dlogits, const T *logits, const float *labels, u32 *bad, int m,     \
                              int n, int padded, double s, const Scaler *scaler) {                                     \
    wide_cross_entropy<T>(row_loss, dlogits, logits, labels, bad, m, n, padded, s, scaler);                            \
  }

WIDE_KERNELS(Half, f16)
WIDE_KERNELS(BFloat, bf16)
