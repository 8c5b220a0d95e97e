// Exponential and logarithm with the same bits as the CPU's, whose error bounds are derived in
// cpu/expf.go and cpu/logarithm.go. They compute in float64, rounding each product and sum.
#pragma once
#include "base.cuh"

#define LN2 0x1.62e42fefa39efp-1

// exponential returns e^x with a relative error below 2^-27, for x clamped to ±150. NaN stays NaN.
__device__ inline double exponential(double x) {
  if (x > 150.0)
    x = 150.0;
  else if (x < -150.0)
    x = -150.0;
  const double shift = 0x1.8p52; // adding it moves the nearest integer into the low bits
  double t = x * 0x1.71547652b82fep0 + shift;
  double r = x - (t - shift) * LN2;
  double r2 = r * r;
  double p01 = 1.0 + r;
  double p23 = 1.0 / 2 + (1.0 / 6) * r;
  double p45 = 1.0 / 24 + (1.0 / 120) * r;
  double p67 = 1.0 / 720 + (1.0 / 5040) * r;
  double low = p01 + p23 * r2;
  double high = p45 + p67 * r2;
  double p = low + high * (r2 * r2);
  return p * __longlong_as_double((long long)(((u64)__double_as_longlong(t) << 52) + (1023ull << 52)));
}

// logarithm returns the logarithm of a normal positive number. NaN stays NaN.
__device__ inline double logarithm(double x) {
  if (x != x) return x;
  u64 bits = (u64)__double_as_longlong(x);
  i64 k = (i64)(bits - 0x3fe6a09e667f3bcdull) >> 52;
  double m = __longlong_as_double((long long)(bits - ((u64)k << 52)));
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double p = 1.0 / 11 + z * (1.0 / 13);
  p = 1.0 / 9 + z * p;
  p = 1.0 / 7 + z * p;
  p = 1.0 / 5 + z * p;
  p = 1.0 / 3 + z * p;
  double s2 = 2.0 * s;
  return (double)k * LN2 + (s2 + s2 * (z * p));
}

// sigmoid_of returns 1/(1+e^-x), computed in float64 and rounded once.
__device__ inline float sigmoid_of(float x) { return (float)(1.0 / (1.0 + exponential(-(double)x))); }

// relu_of returns max(x, 0). NaN stays NaN.
__device__ inline float relu_of(float x) { return x <= 0.0f ? 0.0f : x; }
