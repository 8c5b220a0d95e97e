// Numbers of the driver's interface: lists of names with what they stand for. Without NVIDIA's headers they are defined (abi.h); with them each is
// compared with the header's.
#pragma once

#define RESULTS(V)                                                                                                                        \
  V(CUDA_SUCCESS, 0) V(CUDA_ERROR_INVALID_VALUE, 1) V(CUDA_ERROR_OUT_OF_MEMORY, 2) V(CUDA_ERROR_NOT_INITIALIZED, 3)                       \
  V(CUDA_ERROR_NO_DEVICE, 100) V(CUDA_ERROR_INVALID_DEVICE, 101) V(CUDA_ERROR_INVALID_IMAGE, 200) V(CUDA_ERROR_INVALID_CONTEXT, 201)      \
  V(CUDA_ERROR_NO_BINARY_FOR_GPU, 209) V(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217) V(CUDA_ERROR_INVALID_HANDLE, 400)                       \
  V(CUDA_ERROR_NOT_FOUND, 500) V(CUDA_ERROR_NOT_READY, 600) V(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                            \
  V(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) V(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) V(CUDA_ERROR_LAUNCH_FAILED, 719)              \
  V(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720) V(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                           \
  V(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901) V(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903) V(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)    \
  V(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905) V(CUDA_ERROR_CAPTURED_EVENT, 907) V(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)

#define DEVICE_ATTRIBUTES(V)                                                                                                              \
  V(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) V(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                             \
  V(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) V(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                            \
  V(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37) V(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                             \
  V(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39) V(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                           \
  V(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) V(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                                       \
  V(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)

#define FUNCTION_ATTRIBUTES(V) V(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)

#define CAPTURE_MODES(V)                                                                                                                  \
  V(CU_STREAM_CAPTURE_MODE_GLOBAL, 0) V(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1) V(CU_STREAM_CAPTURE_MODE_RELAXED, 2)
