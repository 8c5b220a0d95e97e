// NVRTC: it accepts only the sources of this program's kernels, and returns an image that names the
// same kernels compiled for the host.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include "image.h"

#ifdef NVIDIA_HEADERS
#include <nvrtc.h>
static_assert(NVRTC_SUCCESS == 0 && NVRTC_ERROR_INVALID_INPUT == 3 && NVRTC_ERROR_INVALID_PROGRAM == 4 &&
              NVRTC_ERROR_INVALID_OPTION == 5 && NVRTC_ERROR_COMPILATION == 6 &&
              NVRTC_ERROR_BUILTIN_OPERATION_FAILURE == 7);
#else
enum nvrtcResult {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7
};
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

#define RTC extern "C" __attribute__((visibility("default"))) nvrtcResult

#ifndef CUDA_MAJOR
#define CUDA_MAJOR 13
#endif

namespace {

struct Program {
  std::string name, text, log;
  std::map<std::string, std::string> headers;
  fakecuda::Image image = {};
  bool compiled = false;
};

std::mutex lock; // guards programs
std::set<Program *> programs;

Program *find(nvrtcProgram p) {
  std::lock_guard<std::mutex> held(lock);
  return programs.count((Program *)p) ? (Program *)p : nullptr;
}

// folder returns the folder of this library.
std::string folder() {
  Dl_info info;
  if (!dladdr((void *)&folder, &info)) return "";
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

// content reads a file and reports whether it exists.
bool content(const std::string &path, std::string *out) {
  FILE *f = fopen(path.c_str(), "rb");
  if (!f) return false;
  char part[1 << 14];
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) out->append(part, n);
  fclose(f);
  return true;
}

// is_ours reports whether a text equals the source file of that name.
bool is_ours(const std::string &name, const std::string &text, std::string *log) {
  std::string want;
  if (content(folder() + "/units/" + name, &want) && want == text) return true;
  *log += name + ": the text differs from the source that the host kernels were built from\n";
  return false;
}

const std::vector<int> &archs() {
#if CUDA_MAJOR >= 13
  static const std::vector<int> all = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
#else
  static const std::vector<int> all = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120};
#endif
  return all;
}

const char *known_options[] = {"--std=c++17",      "--fmad=",         "--ftz=",          "--prec-div=", "--prec-sqrt=",
                               "--ptxas-options=", "--maxrregcount=", "--define-macro=", "-D"};

// read_options returns false if an option or the architecture is unknown.
bool read_options(int n, const char *const *options, Program *p) {
  for (int i = 0; i < n; i++) {
    std::string o = options[i] ? options[i] : "";
    bool known = false;
    if (sscanf(o.c_str(), "--gpu-architecture=sm_%d", &p->image.arch) == 1)
      for (int a : archs()) known = known || a == p->image.arch;
    for (const char *k : known_options) known = known || o.compare(0, strlen(k), k) == 0;
    if (!known) {
      p->log += "nvrtc: error: invalid value or unknown option " + o + "\n";
      return false;
    }
  }
  return p->image.arch != 0;
}

} // namespace

RTC nvrtcVersion(int *major, int *minor) {
  if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
  *major = CUDA_MAJOR, *minor = 0;
  return NVRTC_SUCCESS;
}

RTC nvrtcGetNumSupportedArchs(int *n) {
  if (!n) return NVRTC_ERROR_INVALID_INPUT;
  *n = (int)archs().size();
  return NVRTC_SUCCESS;
}

RTC nvrtcGetSupportedArchs(int *out) {
  if (!out) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(out, archs().data(), archs().size() * sizeof(int));
  return NVRTC_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) const char *nvrtcGetErrorString(nvrtcResult r) {
  switch ((int)r) {
  case 0: return "NVRTC_SUCCESS";
  case 3: return "NVRTC_ERROR_INVALID_INPUT";
  case 4: return "NVRTC_ERROR_INVALID_PROGRAM";
  case 5: return "NVRTC_ERROR_INVALID_OPTION";
  case 6: return "NVRTC_ERROR_COMPILATION";
  case 7: return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
  }
  return "NVRTC_ERROR unknown";
}

RTC nvrtcCreateProgram(nvrtcProgram *out, const char *text, const char *name, int n, const char *const *headers,
                       const char *const *names) {
  if (!out || !text || n < 0 || (n && (!headers || !names))) return NVRTC_ERROR_INVALID_INPUT;
  Program *p = new Program{name ? name : "default_program", text, "", {}};
  for (int i = 0; i < n; i++) p->headers[names[i]] = headers[i];
  std::lock_guard<std::mutex> held(lock);
  programs.insert(p);
  *out = (nvrtcProgram)p;
  return NVRTC_SUCCESS;
}

RTC nvrtcDestroyProgram(nvrtcProgram *handle) {
  Program *p = handle ? find(*handle) : nullptr;
  if (!p) return NVRTC_ERROR_INVALID_PROGRAM;
  std::lock_guard<std::mutex> held(lock);
  programs.erase(p);
  delete p;
  *handle = nullptr;
  return NVRTC_SUCCESS;
}

RTC nvrtcCompileProgram(nvrtcProgram handle, int n, const char *const *options) {
  Program *p = find(handle);
  if (!p) return NVRTC_ERROR_INVALID_PROGRAM;
  char builtins[40]; // NVRTC opens it by this name
  snprintf(builtins, sizeof builtins, "libnvrtc-builtins.so.%d.0", CUDA_MAJOR);
  if (!dlopen(builtins, RTLD_LAZY | RTLD_NOLOAD)) {
    p->log = std::string("nvrtc: error: failed to open ") + builtins + ".\n";
    return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
  }
  if (!read_options(n, options, p)) return NVRTC_ERROR_INVALID_OPTION;
  bool ours = is_ours(p->name, p->text, &p->log);
  for (auto &h : p->headers) ours = is_ours(h.first, h.second, &p->log) && ours;
  if (!ours) return NVRTC_ERROR_COMPILATION;
  memcpy(p->image.magic, fakecuda::image_magic, sizeof p->image.magic);
  snprintf(p->image.unit, sizeof p->image.unit, "%s", p->name.c_str());
  snprintf(p->image.library, sizeof p->image.library, "%s/kernels.so", folder().c_str());
  p->compiled = true;
  return NVRTC_SUCCESS;
}

RTC nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *n) {
  Program *p = find(handle);
  if (!p) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!n) return NVRTC_ERROR_INVALID_INPUT;
  *n = p->log.size() + 1;
  return NVRTC_SUCCESS;
}

RTC nvrtcGetProgramLog(nvrtcProgram handle, char *out) {
  Program *p = find(handle);
  if (!p) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!out) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(out, p->log.c_str(), p->log.size() + 1);
  return NVRTC_SUCCESS;
}

RTC nvrtcGetCUBINSize(nvrtcProgram handle, size_t *n) {
  Program *p = find(handle);
  if (!p || !p->compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!n) return NVRTC_ERROR_INVALID_INPUT;
  *n = sizeof p->image;
  return NVRTC_SUCCESS;
}

RTC nvrtcGetCUBIN(nvrtcProgram handle, char *out) {
  Program *p = find(handle);
  if (!p || !p->compiled) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!out) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(out, &p->image, sizeof p->image);
  return NVRTC_SUCCESS;
}

// The fake has no PTX: its GPU runs the kernels' source.
RTC nvrtcGetPTXSize(nvrtcProgram, size_t *) { return NVRTC_ERROR_INVALID_PROGRAM; }
RTC nvrtcGetPTX(nvrtcProgram, char *) { return NVRTC_ERROR_INVALID_PROGRAM; }
