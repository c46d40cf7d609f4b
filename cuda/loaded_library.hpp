// Loads libraries at their first use, so that programs start without them.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace lade::cuda {

// A shared library. It stays loaded until the process ends.
//
// Thread-safe.
class loaded_library {
 public:
  // Loads the first of `files` that the loader finds: names such as "libnvjpeg.so.13", or paths.
  // Throws error(unsupported), "load nvJPEG: ...", with the loader's message for each.
  loaded_library(std::string_view library, std::initializer_list<const char*> files);

  // The loaded one of the files.
  const std::string& file() const noexcept { return file_; }

  // Sets `function` to the function with this name. Throws error(unsupported) if the library lacks
  // it: it is older than its header, or another library of the same name.
  template <class Result, class... Args>
  void find(const char* name, Result (*&function)(Args...)) const {
    function = reinterpret_cast<Result (*)(Args...)>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  std::string doing_;
  std::string file_;
  void* handle_ = nullptr;
};

}  // namespace lade::cuda
