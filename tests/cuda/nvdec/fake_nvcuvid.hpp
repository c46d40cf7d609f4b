// NVDEC in host memory, which decodes with FFmpeg, for machines without a GPU.

#pragma once

#include "../../../cuda/nvdec/nvcuvid_api.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lade::cuda {

// While it lives, the module calls it instead of NVDEC. A fake_driver must live around it.
//
// As the real one, the parser takes Annex B, is a packet late, calls back inside of parse_data,
// shows pictures in the order of presentation, and uses the memory of a picture again once it has
// shown it. A mapped picture is filled in the order of the stream. Once it is unmapped, other
// pictures are mapped there: at once, its samples are lost. It has the display area of the decoder,
// resized to the target size: each sample is the nearest one, as `nearest` has it.
//
// It finds misuse, which `faults()` lists: calls without the context, NAL units with lengths, a
// picture that is mapped after its memory was used again, more mapped surfaces than there are, a
// surface that is unmapped twice or still mapped when its decoder is destroyed, reconfiguration
// outside of the callback of a sequence, what still lives at the end.
class fake_nvcuvid {
 public:
  struct options {
    int engines = 2;
    unsigned max_width = 4096;
    unsigned max_height = 4096;
    unsigned min_width = 48;
    unsigned min_height = 16;
    unsigned max_macroblocks = 4096 * 4096 / 256;
    unsigned output_formats = 15;           // bits of cudaVideoSurfaceFormat
    std::set<cudaVideoCodec> refused = {};  // codecs that the GPU lacks

    // What the GPU says of each picture; else what FFmpeg has found.
    std::optional<cuvidDecodeStatus> status = {};

    // Changes the format that the parser reports, before the module sees it.
    std::function<void(CUVIDEOFORMAT&)> change = {};
  };

  fake_nvcuvid() : fake_nvcuvid(options{}) {}
  explicit fake_nvcuvid(const options& how);
  fake_nvcuvid(const fake_nvcuvid&) = delete;
  ~fake_nvcuvid();

  // The next call of the function, named as in the table, returns this; `after` such calls.
  void fail_next(const std::string& function, CUresult with, std::size_t after = 0);

  // Contexts cannot be made current any more, or again.
  void lose_context(bool lost = true);

  std::size_t calls(const std::string& function) const;
  std::vector<std::string> faults() const;

  struct live_objects {
    std::size_t parsers = 0;
    std::size_t decoders = 0;
    std::size_t mapped = 0;
    int contexts = 0;  // retained
  };
  live_objects live() const;

  // The most decoders that ever lived at a time.
  std::size_t most_decoders() const;

  // Which of `from` samples stands for sample i of `to`.
  static int nearest(int i, int from, int to) noexcept { return (2 * i + 1) * from / (2 * to); }

  // How many contexts the calling thread has pushed.
  static std::size_t depth();

 private:
  struct table;
  struct fake_parser;
  struct fake_decoder;
  struct failure {
    CUresult with;
    std::size_t after;
  };

  CUresult enter(const char* function, bool needs_context);
  void fault(std::string what);
  fake_decoder* decoder_of(CUvideodecoder handle);
  CUresult map(fake_decoder& decoder, int index, unsigned long long* address, unsigned* pitch,
               CUstream stream);

  options options_;
  mutable std::recursive_mutex mutex_;  // guards all that follows
  std::map<void*, std::unique_ptr<fake_parser>> parsers_;
  std::map<void*, std::unique_ptr<fake_decoder>> decoders_;
  std::map<std::string, failure> failures_;
  std::map<std::string, std::size_t> calls_;
  std::vector<std::string> faults_;
  std::size_t most_decoders_ = 0;
  int contexts_ = 0;
  bool lost_ = false;
};

}  // namespace lade::cuda
