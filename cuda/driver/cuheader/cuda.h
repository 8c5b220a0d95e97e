// The CUDA 12 header with the changes that gorgonia.org/cu v0.9.4 needs, because that package was
// written for CUDA 11. Put this folder before NVIDIA's in CGO_CFLAGS.
#ifndef FSPDA_CUHEADER_CUDA_H
#define FSPDA_CUHEADER_CUDA_H

#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_12
#include_next <cuda.h>
#undef CUDA_KERNEL_NODE_PARAMS

// CUDA 12 added parameters to graph nodes; the driver still exports the function with the old ones.
typedef CUDA_KERNEL_NODE_PARAMS_v1 CUDA_KERNEL_NODE_PARAMS;
#undef cuGraphAddKernelNode
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS *params);

// Compute capabilities that CUDA 12 no longer names.
#define CU_TARGET_COMPUTE_20 20
#define CU_TARGET_COMPUTE_21 21

#endif
