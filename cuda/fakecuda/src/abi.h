// The types of the CUDA driver: NVIDIA's own where NVIDIA_HEADERS is defined, so that the compiler holds every function here against its
// declaration there, else as much of them as is needed.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "values.h"

#ifdef NVIDIA_HEADERS
#include <cuda.h>
#undef cuEventElapsedTime // the header would have a later version of it
#define SAME(name, number) static_assert(name == number, #name " is another number in NVIDIA's header");
RESULTS(SAME) DEVICE_ATTRIBUTES(SAME) FUNCTION_ATTRIBUTES(SAME) CAPTURE_MODES(SAME)
#else
#define ENUMERATOR(name, number) name = number,
enum CUresult { RESULTS(ENUMERATOR) };
enum CUdevice_attribute { DEVICE_ATTRIBUTES(ENUMERATOR) };
enum CUfunction_attribute { FUNCTION_ATTRIBUTES(ENUMERATOR) };
enum CUstreamCaptureMode { CAPTURE_MODES(ENUMERATOR) };
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
