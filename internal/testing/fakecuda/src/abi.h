// The types of the CUDA driver. If NVIDIA_HEADERS is defined they are NVIDIA's own, so that the
// compiler checks every function here against its declaration; else the ones needed here.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "values.h"

#ifdef NVIDIA_HEADERS
#include <cuda.h>
#undef cuEventElapsedTime // the header would select a later version
#define CHECK_VALUE(name, number) static_assert(name == number, #name " has another value in NVIDIA's header");
RESULTS(CHECK_VALUE) DEVICE_ATTRIBUTES(CHECK_VALUE) FUNCTION_ATTRIBUTES(CHECK_VALUE) CAPTURE_MODES(CHECK_VALUE) LIMITS(CHECK_VALUE)
#else
#define DEFINE_VALUE(name, number) name = number,
enum CUresult { RESULTS(DEFINE_VALUE) };
enum CUdevice_attribute { DEVICE_ATTRIBUTES(DEFINE_VALUE) };
enum CUfunction_attribute { FUNCTION_ATTRIBUTES(DEFINE_VALUE) };
enum CUlimit { LIMITS(DEFINE_VALUE) };
enum CUstreamCaptureMode { CAPTURE_MODES(DEFINE_VALUE) };
enum CUstreamCaptureStatus : int {};
enum CUjit_option : int {};
typedef int CUdevice;
typedef unsigned long long CUdeviceptr, cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
#define CUDAAPI
#endif

#define API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
