// permit: releases a permit of a semaphore.

#pragma once

#include <lade/semaphore.hpp>

namespace lade::io::http {

// Holds an acquired permit, and releases it when destroyed. The semaphore must outlive it.
class permit {
 public:
  explicit permit(semaphore& permits) noexcept : permits_(permits) {}
  permit(const permit&) = delete;
  ~permit() { permits_.release(); }

 private:
  semaphore& permits_;
};

}  // namespace lade::io::http
