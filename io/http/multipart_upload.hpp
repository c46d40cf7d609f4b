// Multipart uploads to S3
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html).

#pragma once

#include "s3_state.hpp"
#include "sigv4.hpp"

#include <lade/event.hpp>
#include <lade/task.hpp>
#include <lade/url.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lade::io::http {

// An upload in progress, which the server identifies by `id`.
struct multipart_upload {
  multipart_upload(std::shared_ptr<const s3_store::state> in, std::string named)
      : store(std::move(in)), url(std::move(named)), doing("upload " + without_secrets(url)) {}

  std::string query() const { return "uploadId=" + percent_encoded(id, false); }

  static constexpr auto patience = std::chrono::seconds(10);  // for parts in flight at an abort

  const std::shared_ptr<const s3_store::state> store;
  const std::string url;
  const std::string doing;  // for errors
  std::string id;
  std::uint64_t bytes = 0;

  // Records a failure of a part or of the content. The first one fails the upload.
  void fail(std::exception_ptr first_failure) {
    std::lock_guard lock(mutex);
    if (!failure) failure = std::move(first_failure);
    failing.set();
  }
  bool is_failing() {
    std::lock_guard lock(mutex);
    return failure != nullptr;
  }

  std::mutex mutex;
  std::vector<std::string> tags;  // of the parts; guarded by mutex while they are sent
  std::exception_ptr failure;     // guarded by mutex
  event failing;                  // set with the first failure
};

// Completes the upload: joins its parts to an object. Returns the object's entity tag.
task<std::string> complete_upload(multipart_upload& upload);

// Aborts the upload and removes its parts, even if the caller is cancelled. Returns the reason if
// that fails, else an empty text.
task<std::string> abort_upload(multipart_upload& upload);

}  // namespace lade::io::http
