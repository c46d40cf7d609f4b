// What the pages take for granted, by page: the names of their readers' programs.

#pragma once

#include <lade/cuda/decode_jpegs.hpp>
#include <lade/cuda/jpeg_decoder.hpp>
#include <lade/cuda/nvdec/capabilities.hpp>
#include <lade/cuda/nvdec/decode_clip.hpp>
#include <lade/cuda/nvdec/decode_clips.hpp>
#include <lade/cuda/nvdec/surfaces.hpp>
#include <lade/cuda/to_device.hpp>
#include <lade/io/directory.hpp>
#include <lade/io/disk_cache.hpp>
#include <lade/io/file.hpp>
#include <lade/io/formats/from_shards.hpp>
#include <lade/io/formats/mds.hpp>
#include <lade/io/formats/npz.hpp>
#include <lade/io/formats/safetensors.hpp>
#include <lade/io/formats/saved_listing.hpp>
#include <lade/io/formats/tfrecord.hpp>
#include <lade/io/formats/tokens.hpp>
#include <lade/io/formats/wav.hpp>
#include <lade/io/http/urls.hpp>
#include <lade/io/memory_cache.hpp>
#include <lade/io/ranges.hpp>
#include <lade/lade.hpp>
#include <lade/media/av/audio.hpp>
#include <lade/media/av/clip.hpp>
#include <lade/media/av/convert.hpp>
#include <lade/media/av/demuxer.hpp>
#include <lade/media/av/encoder.hpp>
#include <lade/media/av/load_video.hpp>
#include <lade/media/av/log_mel.hpp>
#include <lade/media/av/muxer.hpp>
#include <lade/media/av/save_image.hpp>
#include <lade/media/av/video.hpp>
#include <lade/media/boxes.hpp>
#include <lade/media/crop.hpp>
#include <lade/media/filters/filter_graph.hpp>
#include <lade/media/image.hpp>
#include <lade/media/mask.hpp>
#include <lade/media/size_buckets.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

inline lade::runtime& runtime = *static_cast<lade::runtime*>(nullptr);

inline auto files = lade::from(lade::io::files("train", "**/*.jpg"));

template <class T>
lade::pipeline<T> some();

// A type of the reader's, whatever it has.
struct image {
  int width = 0;
};
image decode(const lade::sample& encoded);

namespace page_readme {
struct torch_tensor {};
namespace lade_torch {
torch_tensor to_torch(const lade::tensor& shared);
}  // namespace lade_torch
inline auto batches = some<lade::sample_batch>();
inline lade::state saved;
inline int network, optimizer;
void train(const lade::tensor& batch);
void step(torch_tensor images, torch_tensor labels);
bool time_to_save();
void save(int network, int optimizer, const std::string& data);
}  // namespace page_readme

namespace page_checkpoint_and_resume {
struct model_type {};
inline model_type model;
inline auto batches = some<lade::sample_batch>();
inline auto samples = lade::from(std::vector<int>());
inline std::vector<int> table;
class document {
 public:
  std::size_t length() const;
};
inline auto images = some<image>();
lade::async_generator<image> at_least(lade::async_generator<image> in, int width);
inline lade::state rank_0, rank_1, rank_2, rank_3;
void train(const lade::sample_batch& batch);
bool time_to_save();
void save(const model_type& model, const std::string& state);
std::string load();
}  // namespace page_checkpoint_and_resume

namespace page_error_handling {
void train(const image& decoded);
}  // namespace page_error_handling

namespace page_building_pipelines {
struct page {};
using sample = lade::sample;
struct tokenizer {
  explicit tokenizer(const char* path);
  int operator()(const lade::sample& text) const;
};
struct connection {
  explicit connection(std::uint64_t epoch);
  std::string translate(const std::string& text) const;
};
inline auto texts = some<std::string>();
inline std::vector<int> table;
page page_at(std::uint64_t index);
lade::async_generator<std::string> messages();
image crop_at_random(image whole, lade::random random);
std::string names_of_labels(std::int64_t label);
bool is_large(const lade::sample& file);
image decode_tiff(const lade::sample& encoded);
image correct(image decoded);
image augment(image decoded);
int parse(const lade::sample& text);
std::vector<int> model(const std::vector<std::string>& texts);
std::vector<int> model_a(std::vector<image> batch);
std::vector<int> model_b(std::vector<image> batch);
int kind_of(const image& decoded);
struct schedule_type {
  void plan(std::uint64_t steps);
};
inline schedule_type schedule;
inline auto train_files = lade::io::files("train", "**/*");
inline auto check_files = lade::io::files("check", "**/*");
inline auto images = some<image>();
inline auto batches = some<lade::sample_batch>();
inline auto archives = some<std::string>();
inline auto samples = some<lade::sample>();
inline auto web = some<page>(), books = some<page>(), code = some<page>();
inline auto real = some<lade::sample>(), made = some<lade::sample>();
void train(const lade::tensor& batch);
}  // namespace page_building_pipelines

namespace page_finding_the_bottleneck {
inline auto batches = some<lade::sample_batch>();
void train(const lade::sample_batch& batch);
void log(const std::string& interval, const std::string& process);
}  // namespace page_finding_the_bottleneck

namespace page_batching {
struct utterance {
  int speaker() const;
};
class dialogue {
 public:
  bool empty() const;
  int speaker() const;
  void push_back(utterance next);
};
inline auto shards = some<lade::sample>();
void train(const lade::tensor& images, const lade::tensor& depths, const lade::tensor& boxes);
inline auto sentences = some<std::vector<int>>();
inline auto tokens = some<std::vector<int>>();
inline auto utterances = some<utterance>();
inline auto files = lade::from(std::vector<lade::sample>());
inline auto decode = lade::map(::decode);
inline auto augment = lade::map([](image decoded, lade::random) { return decoded; });
inline std::vector<double> weights;
inline lade::shard_options rank;
std::size_t length_of(const std::vector<int>& sentence);
}  // namespace page_batching

namespace page_autotuning {
lade::task<lade::sample> fetch(lade::sample from);
void train(const lade::sample& page);
}  // namespace page_autotuning

namespace page_running_a_pipeline {
struct credentials {
  lade::task<> fetch();
};
inline std::shared_ptr<credentials> shared;
struct tokens {};
struct message {};
struct queue {
  std::optional<message> try_pop();
};
inline auto batches = some<tokens>();
void train(const tokens& batch);
lade::task<> step(tokens batch);
}  // namespace page_running_a_pipeline

namespace page_remote_data {
inline int rank = 0;
void wait_for_rank_0();
}  // namespace page_remote_data

namespace page_shards {
inline auto samples = some<lade::sample>();
void train_on(const lade::buffer& image, std::string_view caption);
}  // namespace page_shards

namespace page_arrays_and_records {
void train(const lade::tensor& embeddings, const lade::tensor& targets);
}  // namespace page_arrays_and_records

namespace page_caching {
inline auto samples = some<lade::sample>();
void train_on(const lade::buffer& image);
}  // namespace page_caching

namespace page_demuxing {
inline lade::buffer file;
void show(const lade::media::frame& shown);
void send(const lade::buffer& bytes);
lade::buffer receive();
}  // namespace page_demuxing

namespace page_decoding_videos {
inline lade::buffer file;
inline lade::media::video opened(file);
inline std::vector<std::int64_t> numbers;
void show(const lade::tensor& picture);
void save(std::int64_t number, const lade::tensor& picture);
void train(const lade::tensor& clips);
}  // namespace page_decoding_videos

namespace page_decoding_audio {
inline auto waveforms = some<lade::sample>();
inline lade::tensor waveform;
inline lade::buffer file;
void train(const lade::tensor& batch);
}  // namespace page_decoding_audio

namespace page_frame_accuracy {
inline lade::buffer file;
void use(const lade::tensor& plane, const lade::media::rational& time);
}  // namespace page_frame_accuracy

namespace page_encoding {
inline lade::tensor clip;
}  // namespace page_encoding

namespace page_batches_on_gpus {
inline auto samples = some<lade::sample>();
struct writing {
  lade::tensor_spec spec() const;
  void operator()(const lade::sample& from, const lade::tensor& slot) const;
};
inline writing writer;
void train(const lade::tensor& batch);
void train(const lade::tensor& batch, const lade::tensor& labels, CUstream_st* stream);
void train(const lade::tensor& batch, CUstream_st* stream);
inline lade::tensor images;
inline lade::tensor labels;
namespace framework {
void* allocate(std::size_t bytes, std::size_t alignment);
void free(void* memory) noexcept;
}  // namespace framework
struct request {};
struct library {
  template <class F>
  void submit(request, F) {}
};
}  // namespace page_batches_on_gpus

namespace page_sharding_across_ranks {
struct model_type {};
inline model_type model;
inline std::uint64_t epoch = 0;
inline lade::shard_options rank;
inline auto& steps = *static_cast<lade::run<lade::sample_batch>*>(nullptr);
std::optional<lade::state> take_state();
void step(const lade::sample_batch& batch);
bool time_to_save();
void save(const model_type& model, const std::string& state);
void save(const lade::state& state);
std::vector<double> gradients_of(const lade::sample_batch& batch);
std::vector<double> zeros();
void all_reduce(std::vector<double>& sums);
void update(const std::vector<double>& sums);
std::vector<std::string> gather(const std::string& text);
inline auto& batches = *static_cast<lade::pipeline<lade::sample_batch>*>(nullptr);
void step(const lade::sample_batch& batch, double weight);
bool any_of_all_ranks(bool here);
}  // namespace page_sharding_across_ranks

namespace page_inference_server {
struct client {};
class request {
 public:
  lade::future<std::string> take_answer();
};
lade::task<request> receive(const client& from);
lade::task<> send(const client& to, std::string text);
lade::task<> answer(std::vector<request> requests);
lade::task<> answer_and_release(std::vector<request> requests, lade::semaphore& free);
}  // namespace page_inference_server

namespace page_decoding_videos_on_gpus {
inline auto& trainer = *static_cast<lade::cuda::stream*>(nullptr);
void train(const lade::tensor& clip);
void train(const lade::tensor& clips, const lade::tensor& labels);
void launch_my_kernel(std::int64_t number, const std::array<const void*, 3>& planes,
                      std::int64_t pitch, CUstream_st* stream);
}  // namespace page_decoding_videos_on_gpus

// Enough of libtorch for the page's programs.
namespace page_training_with_libtorch {
namespace at {
struct Tensor {
  Tensor to(int device) const;
  void backward();
};
struct generator {
  Tensor get_state() const;
};
struct context {
  generator defaultGenerator(int device);
};
context& globalContext();
}  // namespace at
namespace torch {
using at::Tensor;
namespace serialize {
struct OutputArchive {
  void write(const char* name, OutputArchive& part);
  void write(const char* name, const Tensor& tensor, bool is_buffer);
  void write(const char* name, const std::string& text);
  void save_to(std::ostream& out);
};
}  // namespace serialize
namespace nn::functional {
Tensor cross_entropy(const Tensor& scores, const Tensor& labels);
}  // namespace nn::functional
}  // namespace torch
namespace c10::cuda {
struct CUDAStream {
  CUstream_st* stream() const;
  std::int8_t device_index() const;
};
CUDAStream getCurrentCUDAStream();
}  // namespace c10::cuda
namespace lade_torch {
torch::Tensor to_torch(const lade::tensor& shared);
}  // namespace lade_torch
void step(torch::Tensor images, torch::Tensor labels);
struct network_type {
  torch::Tensor forward(const torch::Tensor& images);
  void save(torch::serialize::OutputArchive& to) const;
};
struct optimizer_type {
  void zero_grad();
  void step();
  void save(torch::serialize::OutputArchive& to) const;
};
inline network_type* network = nullptr;
inline optimizer_type optimizer;
inline int device = 0;
inline std::string saved;
inline auto batches = some<lade::sample_batch>();
void replace_file(const std::string& path, const std::string& contents);
}  // namespace page_training_with_libtorch

namespace page_decoding_jpegs_on_gpus {
inline auto samples = some<lade::sample>();
inline auto& decoder = *static_cast<lade::cuda::jpeg_decoder*>(nullptr);
inline auto& trainer = *static_cast<lade::cuda::stream*>(nullptr);
void train(const lade::tensor& images, const lade::tensor& labels);
void display(const lade::tensor& image, const lade::cuda::stream& on);
}  // namespace page_decoding_jpegs_on_gpus

namespace page_segmentation_and_detection {
using namespace lade::media;
inline auto samples = some<lade::sample>();
void train(const lade::tensor& images, const lade::tensor& masks);
void add_targets(const lade::tensor& boxes, const lade::tensor& classes);
}  // namespace page_segmentation_and_detection

namespace page_coming_from_other_loaders {
inline lade::state saved;
std::vector<int> encode(const std::string& text);
void train(const lade::tensor& images, const lade::tensor& labels);
}  // namespace page_coming_from_other_loaders

namespace page_execution {
void train(const lade::sample_batch& batch);
}  // namespace page_execution

namespace page_memory {
void train(const lade::tensor& images);
void write_twice(const lade::buffer& from, const lade::buffer& to);
}  // namespace page_memory

namespace page_checkpoints {
void train(const std::vector<std::uint64_t>& batch);
}  // namespace page_checkpoints

namespace page_gcc12 {
struct request {
  std::string key;
  int count;
};
struct item {
  std::string key;
  int count;
};
struct both {
  std::string a, b;
};
inline auto& pool = *static_cast<lade::thread_pool*>(nullptr);
inline std::string key;
inline std::vector<std::string> box;
inline bool near = true;
std::size_t length(const std::string& text);
std::string value();
lade::task<> send(request what);
lade::task<> send_owned(std::unique_ptr<request> what);
lade::task<> send_pair(std::pair<std::string, int> what);
lade::task<bool> is_full(const std::vector<std::string>& box);
lade::task<std::string> read(std::string name);
lade::task<std::size_t> count(std::vector<std::string> names);
void close(const std::vector<std::string>& box);
}  // namespace page_gcc12

namespace page_optimisation {
inline auto batches = some<lade::sample_batch>();
void train(const lade::sample_batch& batch);
}  // namespace page_optimisation
