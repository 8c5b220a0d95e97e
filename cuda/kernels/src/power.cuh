// The exponential of the special function units, for results that are rounded to 16 bits.
#pragma once
#include "base.cuh"

// power returns 2^x, with an error of two units in the last place. What is below 2^-126 becomes 0.
__device__ inline float power(float x) {
#ifdef FSPDA_HOST
  return exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

// reciprocal returns 1/x, with an error of one unit in the last place. That of infinity is 0.
__device__ inline float reciprocal(float x) {
#ifdef FSPDA_HOST
  return 1.0f / x;
#else
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
