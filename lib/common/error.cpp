#include <lade/error.hpp>

namespace lade {

const std::error_category& error_category() noexcept {
  struct category final : std::error_category {
    const char* name() const noexcept override { return "lade"; }
    std::string message(int code) const override {
      switch (static_cast<errc>(code)) {
        case errc::stopped: return "stopped";
        case errc::timed_out: return "timed out";
        case errc::closed: return "closed";
        case errc::no_runtime: return "awaited outside of a runtime";
        case errc::wrong_thread: return "not allowed on this thread";
        case errc::invalid_argument: return "invalid argument";
        case errc::invalid_data: return "invalid data";
        case errc::unsupported: return "not supported";
        case errc::failed: return "failed";
        case errc::limit_exceeded: return "limit exceeded";
        case errc::changed: return "changed";
        case errc::abandoned: return "abandoned";
      }
      return "unknown error";
    }
  };
  static const category instance;
  return instance;
}

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

const std::error_category& condition_category() noexcept {
  struct category final : std::error_category {
    const char* name() const noexcept override { return "lade condition"; }
    std::string message(int which) const override {
      return static_cast<condition>(which) == condition::device_lost ? "device lost"
                                                                     : "unknown condition";
    }
  };
  static const category instance;
  return instance;
}

std::error_condition make_error_condition(condition which) noexcept {
  return {static_cast<int>(which), condition_category()};
}

void raise(int errno_value, std::string_view doing) {
  throw error(std::error_code(errno_value, std::system_category()), doing);
}

}  // namespace lade
