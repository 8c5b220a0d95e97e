// The header of CUDA 12 as gorgonia.org/cu v0.9.4 wants it, which was written for that of CUDA 11: put this folder before NVIDIA's in CGO_CFLAGS.
#ifndef FSPDA_CUHEADER_CUDA_H
#define FSPDA_CUHEADER_CUDA_H

#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_12
#include_next <cuda.h>
#undef CUDA_KERNEL_NODE_PARAMS

// Nodes of graphs got more parameters; the driver still has the function that takes the old ones.
typedef CUDA_KERNEL_NODE_PARAMS_v1 CUDA_KERNEL_NODE_PARAMS;
#undef cuGraphAddKernelNode
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS *params);

// Generations of GPUs that it no longer names.
#define CU_TARGET_COMPUTE_20 20
#define CU_TARGET_COMPUTE_21 21

#endif
