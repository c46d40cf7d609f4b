// Stores: where objects are that have a URL for a name.

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

// What a listing knows of an object.
struct object_info {
  object_info(std::string url, std::uint64_t bytes, std::string tag)
      : name(std::move(url)), size_bytes(bytes), etag(std::move(tag)) {}

  std::string name;  // its URL
  std::uint64_t size_bytes;
  std::string etag;  // its entity tag, without quotes; empty if there is none
};

// A part of an object, and what its store says of the whole.
class object_part {
 public:
  object_part(buffer content, std::uint64_t object_bytes, std::string etag)
      : content_(std::move(content)), object_bytes_(object_bytes), etag_(std::move(etag)) {}

  const buffer& content() const noexcept { return content_; }
  std::uint64_t object_bytes() const noexcept { return object_bytes_; }

  // The strong entity tag of the object, without quotes; empty if it has none.
  const std::string& etag() const noexcept { return etag_; }

  // Whether a part from the beginning on is the whole object.
  bool is_whole() const noexcept { return content_.size() == object_bytes_; }

 private:
  buffer content_;
  std::uint64_t object_bytes_;
  std::string etag_;
};

// Objects behind URLs, so that io::read, io::open, io::stream and io::files work on them as on
// files. Any thread may call its functions, which require a runtime, throw `error` naming the
// object without secrets, and error(stopped) if the caller is cancelled. The store must outlive
// their tasks and generators, but not what open() gives: the functions of lade::io keep it.
class store {
 public:
  virtual ~store() = default;

  // The content of an object, in memory of the caller's pool.
  virtual task<buffer> read(std::string url) const = 0;

  // An object for random access; null if there is none and `may_be_absent`.
  virtual task<std::shared_ptr<const byte_reader>> open(std::string url,
                                                        bool may_be_absent) const = 0;

  // The content of an object in chunks.
  virtual async_generator<buffer> stream(std::string url, stream_options options) const = 0;

  // The `bytes` bytes of an object from `offset` on, or as many as there are: none, with the length
  // and the tag of the object, if it has no more than `offset` bytes. `bytes` is at least 1. Of a
  // server that can only send whole objects, the whole if `offset` is 0. `etag`: a strong entity
  // tag that the object must have, or empty. Throws error(changed) if it has another, or none, and
  // for nothing else: caches forget the object then.
  //
  // Caches are made of this. A store that does not override it opens the object for each part.
  virtual task<object_part> read_part(std::string url, std::uint64_t offset, std::size_t bytes,
                                      std::string etag) const;

  // All objects whose URLs begin with `prefix`, ordered by the bytes of their URLs. Throws
  // error(unsupported) if the store cannot list.
  virtual async_generator<object_info> list(std::string prefix) const;

  // What the URLs of its objects do not say: two stores of which this is the same have the same
  // objects at the same URLs. Empty where URLs say all, as on the web; the endpoint of an S3 store.
  // Disk caches keep objects by URL and identity, and ask for it once. What passes requests on to
  // another store passes this on too.
  virtual task<std::string> identity() const;
};

// Puts a store at all names that begin with `prefix`: a scheme, "https://", or a part of one,
// "s3://bucket/train/". A longer prefix goes before a shorter one; a store that is mounted at the
// same prefix is replaced. For the whole process, since names mean the same everywhere in it;
// before runs that use the names begin. Any thread. Throws error(invalid_argument) for what is no
// URL.
void mount(std::string_view prefix, std::shared_ptr<const store> where);

// The same, but where a store is mounted at that prefix it stays. Returns whether it was mounted.
bool mount_if_free(std::string_view prefix, std::shared_ptr<const store> where);

// Takes away what is mounted at that prefix. Those who have found it keep it.
void unmount(std::string_view prefix);

// The store of a name; null for paths. Throws error(unsupported) for a URL at which nothing is
// mounted.
std::shared_ptr<const store> find_store(std::string_view name);

// The path of a name: that of a URL of the scheme "file", else the name. Throws
// error(invalid_argument) for a URL of another host, and for a path with a zero byte, of which the
// system would open what stands before it.
std::string local_path(std::string name);

}  // namespace lade::io
