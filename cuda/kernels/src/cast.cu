// Conversions between float32 and 16 bits, and the loss scale that float16 needs, which lives on the device: nothing waits for the host.
#include "half.cuh"
#include "scaler.cuh"

// narrow: dst = src·scale of the scaler, or src where that is null.
template <class T> __device__ inline void narrow(T *dst, const float *src, const Scaler *scaler, i64 n) {
  const float by = scaler ? scaler->scale : 1.0f;
  i64 i = 4 * thread_index();
  for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) dst[i] = Number<T>::from(src[i] * by);
}

// widen: dst = src·inverse of the scaler, or 0 where that has found something that is not finite; or src where it is null.
template <class T> __device__ inline void widen(float *dst, const T *src, const Scaler *scaler, i64 n) {
  const float by = scaler ? scaler->inverse : 1.0f;
  const bool drop = scaler && scaler->found;
  i64 i = 4 * thread_index();
  for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) dst[i] = drop ? 0.0f : to_float(src[i]) * by;
}

template <class T> __device__ inline void check(Scaler *scaler, const T *g, i64 n) {
  constexpr int N = Pack<T>::size;
  i64 i = N * thread_index();
  bool bad = false;
  if (i < n) {
    const Pack<T> v = load_pack(g + i, n - i < N ? (int)(n - i) : N, n - i >= N && fours(address(g)));
#pragma unroll
    for (int j = 0; j < N; j++) bad = bad || not_finite(v.v[j]);
  }
  tell_of(bad, scaler);
}

// update is FSPDA-SA's local step from a gradient as it came out of a backward pass with a scaled loss: g = grad·inverse, u = mu·u + g,
// x = x + (-alpha)·u + (-eta)·lambda, and shadow = x in 16 bits, which the next forward pass reads. A gradient that is not finite changes
// nothing. u and shadow may be null, and scaler, for a loss that is not scaled.
template <class T> __device__ inline void update(float *x, const float *lambda, const T *grad, float *u, T *shadow, const Scaler *scaler, float alpha,
                                                 float eta, float mu, i64 n) {
  if (scaler && scaler->found) return;
  const float by = scaler ? scaler->inverse : 1.0f;
  i64 i = 4 * thread_index();
  for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) {
    float direction = to_float(grad[i]) * by;
    if (u) {
      direction = mu * u[i] + direction;
      u[i] = direction;
    }
    float v = (x[i] + (-alpha) * direction) + (-eta) * lambda[i];
    x[i] = v;
    if (shadow) shadow[i] = Number<T>::from(v);
  }
}

// add_diff_shadow is add_diff of x and lambda that also keeps the shadow of x, at the coordinates that change.
template <class T> __device__ inline void add_diff_shadow(const float *own, const float *other, const u32 *idx, i64 k, float *x, float a, float *lambda,
                                                          float b, T *shadow) {
  i64 j = thread_index();
  if (j >= k) return;
  float d = own[j] - other[j];
  i64 i = idx ? (i64)idx[j] : j;
  float v = x[i] + a * d;
  x[i] = v;
  shadow[i] = Number<T>::from(v);
  lambda[i] = lambda[i] + b * d;
}

// Span is a piece of a vector that is rounded to 16 bits: numbers from, of rows of c, to rows of `room` that begin at `to`.
struct Stretch {
  i64 from, to;
  int n, c, room, unused;
};

// narrow_stretches: a block rounds one stretch of src. What a row has room for beyond its numbers becomes 0. n is a multiple of c.
template <class T> __device__ inline void narrow_stretches(T *dst, const float *src, const Stretch *stretches) {
  const Stretch s = stretches[blockIdx.x];
  const float *from = src + s.from;
  T *to = dst + s.to;
  if (s.c == s.room) {
    for (int i = threadIdx.x; i < s.n; i += blockDim.x) to[i] = Number<T>::from(from[i]);
    return;
  }
  for (int i = threadIdx.x; i < s.n / s.c * s.room; i += blockDim.x) {
    const int row = i / s.room, column = i % s.room;
    to[i] = Number<T>::from(column < s.c ? from[row * s.c + column] : 0.0f);
  }
}

// pad rounds rows of c numbers to rows of `room`, of which those beyond c are 0; crop makes float32 of the first c of each row.
template <class T> __device__ inline void pad(T *dst, const float *src, i64 rows, int c, int room) {
  const i64 i = thread_index();
  if (i >= rows * room) return;
  const int column = (int)(i % room);
  dst[i] = Number<T>::from(column < c ? src[i / room * c + column] : 0.0f);
}

template <class T> __device__ inline void crop(float *dst, const T *src, i64 rows, int c, int room) {
  const i64 i = thread_index();
  if (i < rows * c) dst[i] = to_float(src[i / c * room + i % c]);
}

// unscale divides gradients by the scale, and tells the scaler where one is not finite.
KERNEL(256) unscale(float *g, Scaler *scaler, i64 n) {
  const float by = scaler->inverse;
  i64 i = 4 * thread_index();
  bool bad = false;
  if (i + 4 <= n && fours(address(g))) {
    Four v = load4(g + i);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      bad = bad || not_finite(v.v[j]);
      v.v[j] = v.v[j] * by;
    }
    store4(g + i, v);
  } else {
    for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) {
      bad = bad || not_finite(g[i]);
      g[i] = g[i] * by;
    }
  }
  tell_of(bad, scaler);
}

// drop makes a gradient zero if the scaler has found something.
KERNEL(256) drop(float *g, const Scaler *scaler, i64 n) {
  if (!scaler->found) return;
  i64 i = 4 * thread_index();
  for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) g[i] = 0.0f;
}

// mix: y = (p·*by_a)·a + (q·*by_b)·b; what is null is 1. y may be a or b.
KERNEL(256) mix(float *y, const float *a, const float *b, const float *by_a, const float *by_b, float p, float q, i64 n) {
  const float r = by_a ? p * *by_a : p, s = by_b ? q * *by_b : q;
  const i64 i = thread_index();
  if (i < n) y[i] = r * a[i] + s * b[i];
}

// scaler_step ends an iteration.
KERNEL(32) scaler_step(Scaler *s, float growth, float backoff, float largest, u32 interval) {
  if (threadIdx.x == 0) step_of(s, growth, backoff, largest, interval);
}

#define CAST_KERNELS(T, name)                                                                                                            \
  KERNEL(256) narrow_stretches_##name(T *dst, const float *src, const Stretch *stretches) { narrow_stretches<T>(dst, src, stretches); }         \
  KERNEL(256) pad_##name(T *dst, const float *src, i64 rows, int c, int room) { pad<T>(dst, src, rows, c, room); }                       \
  KERNEL(256) crop_##name(float *dst, const T *src, i64 rows, int c, int room) { crop<T>(dst, src, rows, c, room); }                     \
  KERNEL(256) narrow_##name(T *dst, const float *src, const Scaler *scaler, i64 n) { narrow<T>(dst, src, scaler, n); }                   \
  KERNEL(256) widen_##name(float *dst, const T *src, const Scaler *scaler, i64 n) { widen<T>(dst, src, scaler, n); }                     \
  KERNEL(256) check_##name(Scaler *scaler, const T *g, i64 n) { check<T>(scaler, g, n); }                                                \
  KERNEL(256) update_##name(float *x, const float *lambda, const T *grad, float *u, T *shadow, const Scaler *scaler, float alpha,        \
                            float eta, float mu, i64 n) {                                                                                \
    update<T>(x, lambda, grad, u, shadow, scaler, alpha, eta, mu, n);                                                                    \
  }                                                                                                                                      \
  KERNEL(256) add_diff_shadow_##name(const float *own, const float *other, const u32 *idx, i64 k, float *x, float a, float *lambda,      \
                                     float b, T *shadow) {                                                                               \
    add_diff_shadow<T>(own, other, idx, k, x, a, lambda, b, shadow);                                                                     \
  }

CAST_KERNELS(Half, f16)
CAST_KERNELS(Brain, bf16)
