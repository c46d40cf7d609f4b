// Libraries that are loaded when they are first used, so that programs start without them.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace lade::cuda {

// A shared library. It stays loaded until the process ends.
//
// Thread: any, several at a time.
class loaded_library {
 public:
  // Loads the first of `files` that the loader finds: names such as "libnvjpeg.so.13", or paths.
  // Throws error(unsupported), "load nvJPEG: ...", with what the loader says of each.
  loaded_library(std::string_view library, std::initializer_list<const char*> files);

  // Which of the files it is.
  const std::string& file() const noexcept { return file_; }

  // Sets `function` to the function of that name. Throws error(unsupported) if the library has
  // none, which is older than its header, or another library of the same name.
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
