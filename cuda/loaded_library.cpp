#include "loaded_library.hpp"

#include <lade/error.hpp>

#include <dlfcn.h>

namespace lade::cuda {

static std::string loader_message() {
  const char* message = dlerror();
  return message ? message : "the loader reports no reason";
}

loaded_library::loaded_library(std::string_view library, std::initializer_list<const char*> files)
    : doing_("load " + std::string(library)) {
  std::string reasons;
  for (const char* file : files) {
    handle_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      file_ = file;
      return;
    }
    reasons += (reasons.empty() ? "" : "; ") + loader_message();
  }
  throw error(errc::unsupported, doing_, reasons);
}

void* loaded_library::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (!found) throw error(errc::unsupported, doing_, loader_message());
  return found;
}

}  // namespace lade::cuda
