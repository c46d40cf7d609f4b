// Stores: objects that are identified by URLs, and the prefixes at which stores are mounted.

#pragma once

#include <lade/async_generator.hpp>
#include <lade/buffer.hpp>
#include <lade/byte_reader.hpp>
#include <lade/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace lade::io {

// An object in a listing.
struct object_info {
  object_info(std::string url, std::uint64_t bytes, std::string tag)
      : name(std::move(url)), size_bytes(bytes), etag(std::move(tag)) {}

  std::string name;  // its URL
  std::uint64_t size_bytes;
  std::string etag;  // its entity tag, without quotes; empty if there is none
};

// A part of an object, with the length and the entity tag of the whole object.
class object_part {
 public:
  object_part(buffer content, std::uint64_t object_bytes, std::string etag)
      : content_(std::move(content)), object_bytes_(object_bytes), etag_(std::move(etag)) {}

  const buffer& content() const noexcept { return content_; }
  std::uint64_t object_bytes() const noexcept { return object_bytes_; }

  // The strong entity tag of the object, without quotes; empty if it has none.
  const std::string& etag() const noexcept { return etag_; }

  // Whether a part that starts at offset 0 is the whole object.
  bool is_whole() const noexcept { return content_.size() == object_bytes_; }

 private:
  buffer content_;
  std::uint64_t object_bytes_;
  std::string etag_;
};

// The interface by which io::read, io::open, io::stream and io::files access objects behind URLs.
//
// Thread: any thread may call the functions; their tasks and generators require a runtime.
// Lifetime: the store must outlive its tasks and generators, but not the readers that open()
// returns. The functions of lade::io keep the store alive.
// Errors: functions throw `error` naming the object without secrets, and error(stopped) if the
// caller is cancelled.
class store {
 public:
  virtual ~store() = default;

  // Returns the content of an object, in memory of the caller's pool.
  virtual task<buffer> read(std::string url) const = 0;

  // Opens an object for random access. If the object does not exist, returns null if
  // `may_be_absent`, and throws otherwise.
  virtual task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                        bool may_be_absent) const = 0;

  // Yields the content of an object in chunks.
  virtual async_generator<buffer> stream(std::string url, stream_options options) const = 0;

  // Returns up to `bytes` bytes of an object from `offset` on; `bytes` is at least 1. Returns fewer
  // at the end of the object, and none at or beyond the end, always with the length and the tag of
  // the object. If the server has no ranges and `offset` is 0, returns the whole object. `etag`: a
  // strong tag that the object must have, or empty. Throws error(changed) if the object has another
  // tag or none, and in no other case, because caches drop an object for which it is thrown.
  //
  // Caches call this function. The default opens the object for each part.
  virtual task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                      std::string etag) const;

  // Yields all objects whose URLs begin with `prefix`, ordered by the bytes of their URLs. The
  // default throws error(unsupported): the store has no listings.
  virtual async_generator<object_info> list(std::string prefix) const;

  // Returns the part of an object's identity that is not in its URL, such as the endpoint of an S3
  // store. Two stores with the same identity must have the same objects at the same URLs. The
  // default is empty, which is right if URLs are complete, as on the web. A disk cache identifies
  // objects by URL and identity, and calls this function once. A store that forwards to another
  // store must return the identity of that store.
  virtual task<std::string> identity() const;
};

// Mounts a store at all names that begin with `prefix`: a scheme, "https://", or a scheme and the
// beginning of a path, "s3://bucket/train/".
//
// - The prefix is plain text: "s3://bucket" is a prefix of "s3://bucket2/key" too. End it with "/".
// - The longest prefix of a name is used. A store that is mounted at the same prefix is replaced.
// - A mount holds for the whole process. Mount before the runs that use the names.
//
// Any thread. Throws error(invalid_argument) if `prefix` is not the beginning of a URL, or `where`
// is null. Throws it also for a prefix that begins with "file://", because files need no store.
void mount(std::string_view prefix, std::shared_ptr<const store> where);

// The same, unless a store is mounted at exactly that prefix. Returns whether it mounted `where`.
bool mount_if_free(std::string_view prefix, std::shared_ptr<const store> where);

// Removes the store that is mounted at exactly that prefix, if any. Operations that have started
// keep the store alive.
void unmount(std::string_view prefix);

// Returns the store of a name; null for paths and for URLs of the scheme "file". Throws
// error(unsupported) for a URL without a mounted store.
std::shared_ptr<const store> find_store(std::string_view name);

// Returns the path of a name. For a URL of the scheme "file" (RFC 8089) that is the path of the
// URL; any other name is returned as it is. Throws error(invalid_argument) for a URL of another
// host, and for a path with a zero byte, where the system would end the path.
std::string local_path(std::string name);

}  // namespace lade::io
