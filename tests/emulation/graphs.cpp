// SPDX-License-Identifier: Apache-2.0
// Captured streams and graphs. A stream is captured and used by one thread, so nothing is locked.
#include "emulation/traffic.hpp"
#include "runtime.hpp"

using namespace emulation;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  std::unique_ptr<Graph>* recording = recording_of(stream);
  if (recording == nullptr) return keep(cudaErrorStreamCaptureUnsupported);
  if (*recording) return keep(cudaErrorIllegalState);
  *recording = std::make_unique<Graph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = recording_of(stream)->release();
  return *graph == nullptr ? keep(cudaErrorIllegalState) : cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = new Graph(*graph);
  ++counts().graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const auto& node : graph->nodes) enqueue_made(stream, node);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  --counts().graphs;
  return cudaGraphDestroy(graph);
}
