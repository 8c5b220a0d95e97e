// Conversions between float32 and 16 bits, and the dynamic loss scale for float16, which stays on
// the device so that nothing waits for the host.
#include "half.cuh"
#include "scaler.cuh"

// In the kernels below each thread handles up to eight consecutive numbers and issues all loads
// before it uses the first. If the addresses are not aligned for vector loads, numbers are loaded
// one by one.

// fetch_eight loads up to eight float32 numbers.
__device__ inline void fetch_eight(float (&v)[8], const float *p, int count, bool vectorized) {
  if (vectorized) {
    const Four low = load4(p), high = load4(p + 4);
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] = low.v[j], v[j + 4] = high.v[j];
    return;
  }
#pragma unroll
  for (int j = 0; j < 8; j++) v[j] = j < count ? p[j] : 0.0f;
}

__device__ inline void store_eight(float *p, const float (&v)[8], int count, bool vectorized) {
  if (vectorized) {
    store4(p, Four{{v[0], v[1], v[2], v[3]}});
    store4(p + 4, Four{{v[4], v[5], v[6], v[7]}});
    return;
  }
#pragma unroll
  for (int j = 0; j < 8; j++)
    if (j < count) p[j] = v[j];
}

// Eight is a thread's share of n numbers. addresses is the bitwise or of all addresses.
struct Eight {
  i64 first;
  int count;
  bool vectorized;

  __device__ Eight(i64 n, u64 addresses) {
    first = 8 * thread_index();
    count = n - first < 8 ? (int)(n - first) : 8;
    vectorized = count == 8 && aligned16(addresses);
  }
};

// narrow rounds src to 16 bits; widen converts it back.
template <class T> __device__ inline void narrow(T *dst, const float *src, i64 n) {
  const Eight e(n, address(dst) | address(src));
  if (e.count <= 0) return;
  Pack<T> v;
  fetch_eight(v.v, src + e.first, e.count, e.vectorized);
  store_pack(dst + e.first, v, e.count, e.vectorized);
}

template <class T> __device__ inline void widen(float *dst, const T *src, i64 n) {
  const Eight e(n, address(dst) | address(src));
  if (e.count <= 0) return;
  const Pack<T> v = load_pack(src + e.first, e.count, e.vectorized);
  store_eight(dst + e.first, v.v, e.count, e.vectorized);
}

// Segment is a part of a vector to round to 16 bits: n numbers starting at `from`, in rows of c,
// written to rows of `padded` numbers starting at `to`.
struct Segment {
  i64 from, to;
  int n, c, padded, unused;
};

// narrow_segments: each block rounds one segment of src. Padding becomes 0. n is a multiple of c.
template <class T> __device__ inline void narrow_segments(T *dst, const float *src, const Segment *segments) {
  const Segment s = segments[blockIdx.x];
  const float *from = src + s.from;
  T *to = dst + s.to;
  if (s.c == s.padded && s.n % 8 == 0 && aligned16(address(from) | address(to))) {
#pragma unroll 2
    for (int i = 8 * threadIdx.x; i < s.n; i += 8 * blockDim.x) {
      Pack<T> v;
      fetch_eight(v.v, from + i, 8, true);
      store_pack(to + i, v, 8, true);
    }
    return;
  }
  if (s.c == s.padded) {
    for (int i = threadIdx.x; i < s.n; i += blockDim.x) to[i] = Number<T>::from(from[i]);
    return;
  }
  for (int i = threadIdx.x; i < s.n / s.c * s.padded; i += blockDim.x) {
    const int row = i / s.padded, column = i % s.padded;
    to[i] = Number<T>::from(column < s.c ? from[row * s.c + column] : 0.0f);
  }
}

// pad rounds rows of c numbers to rows of `padded` numbers, with zeros after the first c; crop
// converts the first c numbers of each row to float32.
template <class T> __device__ inline void pad(T *dst, const float *src, i64 rows, int c, int padded) {
  const i64 i = thread_index();
  if (i >= rows * padded) return;
  const int column = (int)(i % padded);
  dst[i] = Number<T>::from(column < c ? src[i / padded * c + column] : 0.0f);
}

template <class T> __device__ inline void crop(float *dst, const T *src, i64 rows, int c, int padded) {
  const i64 i = thread_index();
  if (i < rows * c) dst[i] = to_float(src[i / c * padded + i % c]);
}

// zero_if_inf sets a gradient to zero if the scaler has found a non-finite number.
KERNEL(256) zero_if_inf(float *g, const Scaler *scaler, i64 n) {
  if (!scaler->found) return;
  const Eight e(n, address(g));
  const float none[8] = {};
  store_eight(g + e.first, none, e.count, e.vectorized);
}

// scaled_sum: y = (p·*by_a)·a + (q·*by_b)·b. A null by_a or by_b stands for 1. y may be a or b.
KERNEL(256)
scaled_sum(float *y, const float *a, const float *b, const float *by_a, const float *by_b, float p, float q, i64 n) {
  const float r = by_a ? p * *by_a : p, s = by_b ? q * *by_b : q;
  const i64 i = thread_index();
  if (i < n) y[i] = r * a[i] + s * b[i];
}

// scaler_step updates the loss scale at the end of an iteration.
KERNEL(32) scaler_step(Scaler *s, float growth, float backoff, float largest, u32 interval) {
  if (threadIdx.x == 0) step_scale(s, growth, backoff, largest, interval);
}

#define CAST_KERNELS(T, name)                                                                                          \
  KERNEL(256) narrow_segments_##name(T *dst, const float *src, const Segment *segments) {                              \
    narrow_segments<T>(dst, src, segments);                                                                            \
  }                                                                                                                    \
  KERNEL(256) pad_##name(T *dst, const float *src, i64 rows, int c, int padded) { pad<T>(dst, src, rows, c, padded); } \
  KERNEL(256) crop_##name(float *dst, const T *src, i64 rows, int c, int padded) {                                     \
    crop<T>(dst, src, rows, c, padded);                                                                                \
  }                                                                                                                    \
  KERNEL(256) narrow_##name(T *dst, const float *src, i64 n) { narrow<T>(dst, src, n); }                               \
  KERNEL(256) widen_##name(float *dst, const T *src, i64 n) { widen<T>(dst, src, n); }

CAST_KERNELS(Half, f16)
CAST_KERNELS(BFloat, bf16)
