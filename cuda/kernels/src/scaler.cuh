// The dynamic loss scale for float16, which stays on the device so that nothing waits for the host.
#pragma once
#include "base.cuh"

// Scaler is the state of a dynamic loss scale. If a gradient is not finite, found is set; the
// updates of that iteration then do nothing, and scaler_step reduces the scale. After `interval`
// iterations without one the scale grows.
struct Scaler {
  float scale, inverse;
  u32 found;   // number of warps that saw a non-finite number
  u32 good;    // iterations since the scale last changed
  u32 skipped; // iterations without an update
};

__device__ inline bool not_finite(float v) { return (__float_as_uint(v) & 0x7f800000u) == 0x7f800000u; }

// report_nonfinite records that a thread of the warp saw a non-finite number. All threads of the
// warp must call it.
__device__ inline void report_nonfinite(Scaler *scaler, bool bad) {
  const u32 lanes = __ballot_sync(ALL_LANES, bad);
  if (threadIdx.x % WARP == 0 && lanes) atomicAdd(&scaler->found, 1u);
}

// step_scale updates the scale at the end of an iteration.
__device__ inline void step_scale(Scaler *s, float growth, float backoff, float largest, u32 interval) {
  if (s->found) {
    s->scale = s->scale * backoff;
    if (s->scale < 1.0f) s->scale = 1.0f;
    s->good = 0;
    s->skipped = s->skipped + 1;
  } else if (++s->good >= interval) {
    float larger = s->scale * growth;
    if (larger <= largest) s->scale = larger;
    s->good = 0;
  }
  s->inverse = 1.0f / s->scale;
  s->found = 0;
}
