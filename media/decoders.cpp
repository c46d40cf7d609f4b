#include "decoders.hpp"

#include <lade/support/byte_view.hpp>

#include <memory>
#include <utility>

namespace lade::media {

image_reader& decoders::reader_of(const image_file& file) {
  const support::byte_view bytes(file.bytes);
  if (bytes.empty()) throw error(errc::invalid_data, file.doing, "the file is empty");
  if (bytes.begins("\xff\xd8\xff")) return jpeg;
  if (png_reader::recognises(bytes)) return png;
  if (tiff_reader::recognises(bytes)) return tiff;
  if (webp_reader::recognises(bytes)) return webp;
  if (avif_reader::recognises(bytes)) return avif;
  if (gif_reader::recognises(bytes)) return gif;
  if (bmp_reader::recognises(bytes)) return bmp;
  if (pnm_reader::recognises(bytes)) return pnm;
  throw error(errc::unsupported, file.doing, "the first bytes are of no known image format");
}

// The idle decoders of the calling thread.
static std::unique_ptr<decoders>& decoders_slot() {
  thread_local std::unique_ptr<decoders> slot;
  return slot;
}

void decoders::release() noexcept { decoders_slot().reset(); }

used_decoders::used_decoders() : used_(std::move(decoders_slot())) {
  if (used_ == nullptr) used_ = std::make_unique<decoders>();
}

used_decoders::~used_decoders() {
  if (!large_) decoders_slot() = std::move(used_);
}

}  // namespace lade::media
