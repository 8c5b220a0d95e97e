// GELU in its two forms, SwiGLU, and their gradients, in float64 and rounded once. The CPU computes
// GELU in float32, by polynomials (cpu/vec/curve.go). The tanh form of 16-bit numbers is computed in
// float32.
#include "exponential.cuh"
#include "half.cuh"
#include "power.cuh"

#define GELU_TANH 0
#define GELU_ERF 1

#define SLOPE 1.5957691216057307   // 2·sqrt(2/π)
#define SLOPE3 0.21406444881780073 // times 3·0.044715
#define CUBE 0.044715
#define DENSITY 0.3989422804014327 // 1/sqrt(2π)

// Beyond this size the normal distribution is 0 or 1.
#define ERF_RANGE 17.0f

// Below this number the gradient of the tanh form is 0.
#define TANH_RANGE -13.0f

// tanh_exponential returns exp(-2·sqrt(2/π)·(x + 0.044715·x³)).
__device__ inline double tanh_exponential(double x) { return exponential(-SLOPE * (x * fma(CUBE, x * x, 1.0))); }

// Tail is exp(-x²/2) and half of erfc(|x|/√2).
struct Tail {
  double e, half, size; // size: |x|, within the range
};

// tail_of: with t = |x|/√2 and u = 1/(1+t/2), the half is u·P(u)·exp(-t²). P is a polynomial in a
// variable that goes from -1 to 1.
__device__ inline Tail tail_of(float x) {
  const double p[13] = {0.287428206075337,       0.16257306412161412,    0.05020658280024105,
                        0.002799627953470907,    -0.002984051066995133,  -0.0002805900565683749,
                        0.00028273548070380185,  -2.516069985043501e-06, -3.0328619901762722e-05,
                        5.881536386311837e-06,   2.37439163456088e-06,   -9.426509711829567e-07,
                        -4.3924707995302015e-08};
  Tail t;
  t.size = x != x ? (double)x : x > ERF_RANGE || x < -ERF_RANGE ? (double)ERF_RANGE : x < 0.0f ? -(double)x : (double)x;
  t.e = exponential(-0.5 * (t.size * t.size));
  const double u = 1.0 / fma(t.size, 0.35355339059327373, 1.0), z = fma(u, 2.4210526315789473, -1.4210526315789471);
  double s = p[12];
#pragma unroll
  for (int k = 11; k >= 0; k--) s = fma(s, z, p[k]);
  t.half = (u * s) * t.e;
  return t;
}

__device__ inline float gelu_of(float x, int form) {
  if (form == GELU_TANH) return (float)((double)x / (1.0 + tanh_exponential((double)x)));
  const Tail t = tail_of(x);
  return (float)fma(-t.size, t.half, x < 0.0f ? 0.0 : (double)x);
}

// gelu_slope returns the derivative of GELU times dy.
__device__ inline float gelu_slope(float x, float dy, int form) {
  if (form == GELU_TANH) {
    if (x < TANH_RANGE) return 0.0f * dy;
    const double v = (double)x, e = tanh_exponential(v), s = 1.0 / (1.0 + e);
    return (float)((double)dy * (s * fma(e * s, v * fma(SLOPE3, v * v, SLOPE), 1.0)));
  }
  const Tail t = tail_of(x);
  const double signed_size = x < 0.0f ? -t.size : t.size, phi = x > 0.0f ? 1.0 - t.half : t.half;
  return (float)((double)dy * fma(signed_size * t.e, DENSITY, phi));
}

// GELU of numbers of a type.
template <class T> struct GELU {
  __device__ static float of(float x, int form) { return gelu_of(x, form); }
  __device__ static float slope(float x, float dy, int form) { return gelu_slope(x, dy, form); }
};

// HalfGELU is GELU with an error far below a rounding to 16 bits: with s = 1/(1+exp(-g)), y = x·s.
struct HalfGELU {
  // logistic returns s.
  __device__ static float logistic(float x) {
    return reciprocal(1.0f + power(x * fmaf((float)CUBE * -2.3022082f, x * x, -2.3022082f))); // SLOPE·log2(e)
  }
  __device__ static float of(float x, int form) { return form == GELU_TANH ? x * logistic(x) : gelu_of(x, form); }
  __device__ static float slope(float x, float dy, int form) {
    if (form != GELU_TANH) return gelu_slope(x, dy, form);
    const float s = logistic(x), slope = s * fmaf(1.0f - s, x * fmaf((float)SLOPE3, x * x, (float)SLOPE), 1.0f);
    return dy * (x < TANH_RANGE ? 0.0f : slope);
  }
};
template <> struct GELU<Half> : HalfGELU {};
template <> struct GELU<BFloat> : HalfGELU {};

// gelu_of replaces numbers by their GELU.
template <class T> __device__ inline void gelu_of(Pack<T> &v, int form) {
  if (form == GELU_TANH) {
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) v.v[j] = GELU<T>::of(v.v[j], GELU_TANH);
  } else {
#pragma unroll
    for (int j = 0; j < Pack<T>::size; j++) v.v[j] = GELU<T>::of(v.v[j], GELU_ERF);
  }
}

// A thread computes a pack of numbers.
template <class T> __device__ inline void gelu(T *y, const T *x, i64 n, int form) {
  constexpr int size = Pack<T>::size;
  const i64 i = size * thread_index();
  if (i >= n) return;
  const int count = n - i < size ? (int)(n - i) : size;
  const bool whole = count == size && aligned16(address(x) | address(y));
  Pack<T> v = load_pack(x + i, count, whole);
  gelu_of(v, form);
  store_pack(y + i, v, count, whole);
}

// gelu_grad: dx = dy·gelu'(x). dx may be dy.
template <class T> __device__ inline void gelu_grad(T *dx, const T *x, const T *dy, i64 n, int form) {
  constexpr int size = Pack<T>::size;
  const i64 i = size * thread_index();
  if (i >= n) return;
  const int count = n - i < size ? (int)(n - i) : size;
  const bool whole = count == size && aligned16(address(x) | address(dx) | address(dy));
  const Pack<T> v = load_pack(x + i, count, whole);
  Pack<T> d = load_pack(dy + i, count, whole);
  if (form == GELU_TANH) {
#pragma unroll
    for (int j = 0; j < size; j++) d.v[j] = GELU<T>::slope(v.v[j], d.v[j], GELU_TANH);
  } else {
#pragma unroll
    for (int j = 0; j < size; j++) d.v[j] = GELU<T>::slope(v.v[j], d.v[j], GELU_ERF);
  }
  store_pack(dx + i, d, count, whole);
}

// bias_gelu: z = z + bias in each row of n numbers, y = gelu(z). bias may be null.
template <class T> __device__ inline void bias_gelu(T *y, T *z, const float *bias, i64 m, int n, int form) {
  constexpr int size = Pack<T>::size;
  const i64 i = size * thread_index(), all = m * n;
  if (i >= all) return;
  const int count = all - i < size ? (int)(all - i) : size;
  const bool whole = count == size && aligned16(address(z) | address(y));
  Pack<T> v = load_pack(z + i, count, whole);
  if (bias) {
    int column = all >> 32 ? (int)(i % n) : (int)((u32)i % (u32)n);
    float add[size];
    if (column + size <= n && aligned16(address(bias + column))) {
#pragma unroll
      for (int j = 0; j < size; j += 4) {
        const Four four = load4(bias + column + j);
#pragma unroll
        for (int l = 0; l < 4; l++) add[j + l] = four.v[l];
      }
    } else {
#pragma unroll
      for (int j = 0; j < size; j++) {
        add[j] = bias[column];
        if (++column == n) column = 0;
      }
    }
#pragma unroll
    for (int j = 0; j < size; j++) v.v[j] = to_float(Number<T>::from(v.v[j] + add[j]));
    store_pack(z + i, v, count, whole);
  }
  gelu_of(v, form);
  store_pack(y + i, v, count, whole);
}

// swiglu: y = g·σ(g)·u, of rows of f numbers g and as many u.
template <class T> __device__ inline void swiglu(T *y, const T *gu, i64 m, int f) {
  const i64 i = thread_index();
  if (i >= m * f) return;
  const i64 at = i + i / f * f;
  const double g = (double)to_float(gu[at]), u = (double)to_float(gu[at + f]);
  y[i] = Number<T>::from((float)((g * u) / (1.0 + exponential(-g))));
}

// swiglu_grad: with s = σ(g), dg = dy·u·s·(1+g·(1-s)), du = dy·g·s.
template <class T> __device__ inline void swiglu_grad(T *dgu, const T *gu, const T *dy, i64 m, int f) {
  const i64 i = thread_index();
  if (i >= m * f) return;
  const i64 at = i + i / f * f;
  const double g = (double)to_float(gu[at]), u = (double)to_float(gu[at + f]), e = exponential(-g), s = 1.0 / (1.0 + e);
  const double d = (double)to_float(dy[i]) * s;
  dgu[at] = Number<T>::from((float)((d * u) * (1.0 + g * (e * s))));
  dgu[at + f] = Number<T>::from((float)(d * g));
}

#define GELU_KERNELS(T, suffix)                                                                                        \
  KERNEL(256) gelu_##suffix(T *y, const T *x, i64 n, int form) { gelu<T>(y, x, n, form); }                             \
  KERNEL(256) gelu_grad_##suffix(T *dx, const T *x, const T *dy, i64 n, int form) { gelu_grad<T>(dx, x, dy, n, form); } \
  KERNEL(256) bias_gelu_##suffix(T *y, T *z, const float *bias, i64 m, int n, int form) {                              \
    bias_gelu<T>(y, z, bias, m, n, form);                                                                              \
  }                                                                                                                    \
  KERNEL(256) swiglu_##suffix(T *y, const T *gu, i64 m, int f) { swiglu<T>(y, gu, m, f); }                             \
  KERNEL(256) swiglu_grad_##suffix(T *dgu, const T *gu, const T *dy, i64 m, int f) { swiglu_grad<T>(dgu, gu, dy, m, f); }

GELU_KERNELS(float, f32)
GELU_KERNELS(Half, f16)
GELU_KERNELS(BFloat, bf16)
