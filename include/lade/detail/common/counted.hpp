// Intrusive reference counts. std::shared_ptr is instantiated for every type; for the functions in
// a program's pipelines, that would take most of the compile time.

#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace lade::detail {

// The base of objects that their last owner deletes. If that happens in the destructor of another
// counted object, the deletion is deferred until that destructor has returned. So the deletion of a
// chain of any length needs constant stack. Any thread.
class counted {
 public:
  counted() = default;
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  virtual ~counted() = default;

 private:
  template <class T>
  friend class counted_ptr;

  void add_owner() const noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  void remove_owner() const noexcept {
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete_chain();
  }
  void delete_chain() const noexcept;

  mutable std::atomic<std::size_t> owners_ = 0;
  mutable const counted* next_ = nullptr;  // next object to delete on this thread
};

// An owner of a T, or null.
template <class T>
class counted_ptr {
 public:
  counted_ptr() = default;
  explicit counted_ptr(T* object) noexcept : object_(object) {
    if (object_) object_->add_owner();
  }
  template <class Derived>
  counted_ptr(counted_ptr<Derived> other) noexcept : object_(other.release()) {}
  counted_ptr(const counted_ptr& other) noexcept : counted_ptr(other.object_) {}
  counted_ptr(counted_ptr&& other) noexcept : object_(other.release()) {}
  counted_ptr& operator=(counted_ptr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~counted_ptr() {
    if (object_) object_->remove_owner();
  }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_; }

 private:
  template <class U>
  friend class counted_ptr;

  T* release() noexcept { return std::exchange(object_, nullptr); }

  T* object_ = nullptr;
};

}  // namespace lade::detail
