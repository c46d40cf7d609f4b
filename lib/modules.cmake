# Written by `./dev modules` from modules.ini.
set(lade_modules core media http formats av filters cuda nvdec)

set(lade_core_library lade)
set(lade_core_target lade::lade)
set(lade_core_description "Coroutine data loading for training")
set(lade_core_dependencies threads liburing fmt>=9.1)
set(lade_core_dependency_headers dlpack/dlpack.h)
set(lade_core_sources
  io/cache_block.cpp
  io/cache_directory.cpp
  io/cache_statistics.cpp
  io/cache_use.cpp
  io/cached_calls.cpp
  io/cached_reader.cpp
  io/directory.cpp
  io/disk_cache.cpp
  io/disk_cache_blocks.cpp
  io/file.cpp
  io/glob.cpp
  io/memory_cache.cpp
  io/open_files.cpp
  io/page_cache.cpp
  io/poll.cpp
  io/ranges.cpp
  io/store.cpp
  io/wav_header.cpp
  lib/common/alias_table.cpp
  lib/common/checksum.cpp
  lib/common/counted.cpp
  lib/common/divide_list.cpp
  lib/common/error.cpp
  lib/common/fatal.cpp
  lib/common/futex.cpp
  lib/common/json.cpp
  lib/common/json_reader.cpp
  lib/common/name_digest.cpp
  lib/common/printable.cpp
  lib/common/range_allocator.cpp
  lib/common/require.cpp
  lib/common/url.cpp
  lib/common/utf8.cpp
  lib/coroutines/event.cpp
  lib/coroutines/long_chain.cpp
  lib/coroutines/scope.cpp
  lib/coroutines/semaphore.cpp
  lib/coroutines/stop_requested.cpp
  lib/coroutines/sync_wait.cpp
  lib/coroutines/task.cpp
  lib/coroutines/waiter.cpp
  lib/data/dlpack.cpp
  lib/data/field.cpp
  lib/data/item_bytes.cpp
  lib/data/orientation.cpp
  lib/data/sample.cpp
  lib/data/sample_batch.cpp
  lib/data/stacked_fields.cpp
  lib/data/tensor.cpp
  lib/data/tiff_tags.cpp
  lib/memory/block_store.cpp
  lib/memory/buffer.cpp
  lib/memory/buffer_pool.cpp
  lib/memory/device.cpp
  lib/memory/memory_resource.cpp
  lib/observability/dashboard.cpp
  lib/observability/duration_histogram.cpp
  lib/observability/figures.cpp
  lib/observability/metrics.cpp
  lib/observability/metrics_server.cpp
  lib/observability/observer.cpp
  lib/observability/overview.cpp
  lib/observability/process.cpp
  lib/observability/profile.cpp
  lib/observability/stage_counters.cpp
  lib/observability/stats.cpp
  lib/observability/trace.cpp
  lib/observability/verdict.cpp
  lib/observability/watchdog.cpp
  lib/pipeline/autotune.cpp
  lib/pipeline/description.cpp
  lib/pipeline/elastic.cpp
  lib/pipeline/failure.cpp
  lib/pipeline/failure_journal.cpp
  lib/pipeline/index.cpp
  lib/pipeline/items.cpp
  lib/pipeline/lineage.cpp
  lib/pipeline/merged_state.cpp
  lib/pipeline/node_facts.cpp
  lib/pipeline/open_context.cpp
  lib/pipeline/pipeline.cpp
  lib/pipeline/plan.cpp
  lib/pipeline/progress.cpp
  lib/pipeline/run.cpp
  lib/pipeline/run_children.cpp
  lib/pipeline/run_state.cpp
  lib/pipeline/sample_templates.cpp
  lib/pipeline/stage_registry.cpp
  lib/pipeline/state.cpp
  lib/pipeline/tuned_stages.cpp
  lib/runtime/activity.cpp
  lib/runtime/alarm.cpp
  lib/runtime/background.cpp
  lib/runtime/byte_reader.cpp
  lib/runtime/executor.cpp
  lib/runtime/fallback.cpp
  lib/runtime/job_queue.cpp
  lib/runtime/make_reactor.cpp
  lib/runtime/operation.cpp
  lib/runtime/pool_share.cpp
  lib/runtime/reactor.cpp
  lib/runtime/reactor_service.cpp
  lib/runtime/runtime.cpp
  lib/runtime/thread_pool.cpp
  lib/runtime/uring.cpp
  lib/stages/batch.cpp
  lib/stages/bucket.cpp
  lib/stages/cache.cpp
  lib/stages/concurrent_core.cpp
  lib/stages/cut.cpp
  lib/stages/distribute.cpp
  lib/stages/equal_steps.cpp
  lib/stages/filter.cpp
  lib/stages/flat_map.cpp
  lib/stages/from.cpp
  lib/stages/from_shards.cpp
  lib/stages/inline_calls.cpp
  lib/stages/link.cpp
  lib/stages/map.cpp
  lib/stages/merge.cpp
  lib/stages/pad.cpp
  lib/stages/per_run.cpp
  lib/stages/route.cpp
  lib/stages/shard.cpp
  lib/stages/shuffle.cpp
  lib/stages/slot_ring.cpp
  lib/stages/split.cpp
  lib/stages/stack.cpp
  lib/stages/tee.cpp
  lib/stages/through.cpp
  lib/stages/window.cpp
  lib/stages/workers.cpp)

set(lade_media_library lade-media)
set(lade_media_target lade::media)
set(lade_media_option LADE_MEDIA)
set(lade_media_description "Image decoding (libjpeg-turbo, libtiff, libwebp, libavif, FFmpeg)")
set(lade_media_modules core)
set(lade_media_dependencies libjpeg libtiff-4>=4.5 libwebp libwebpdemux libavif zlib libavcodec libavutil)
set(lade_media_sources
  media/av.cpp
  media/av1_header.cpp
  media/avif_items.cpp
  media/avif_reader.cpp
  media/bmp_reader.cpp
  media/boxes.cpp
  media/chosen_crop.cpp
  media/crop.cpp
  media/decoders.cpp
  media/exif.cpp
  media/frame_reader.cpp
  media/freed_memory.cpp
  media/gif_reader.cpp
  media/image.cpp
  media/image_job.cpp
  media/image_memory.cpp
  media/image_reader.cpp
  media/jpeg_arrays.cpp
  media/jpeg_avx2.cpp
  media/jpeg_avx512.cpp
  media/jpeg_entropy.cpp
  media/jpeg_headers.cpp
  media/jpeg_image.cpp
  media/jpeg_kernels.cpp
  media/jpeg_reader.cpp
  media/jpeg_tables.cpp
  media/load_image.cpp
  media/mask.cpp
  media/picture.cpp
  media/picture_planes.cpp
  media/pixel_avx2.cpp
  media/pixel_avx512.cpp
  media/pixel_kernels.cpp
  media/pixel_writer.cpp
  media/png.cpp
  media/png_reader.cpp
  media/png_text.cpp
  media/pnm_reader.cpp
  media/quick_jpeg.cpp
  media/resize.cpp
  media/resize_avx2.cpp
  media/resize_avx512.cpp
  media/resize_axis.cpp
  media/resize_kernels.cpp
  media/resizer.cpp
  media/simd.cpp
  media/size_buckets.cpp
  media/slot.cpp
  media/tiff_page.cpp
  media/tiff_reader.cpp
  media/webp_reader.cpp
  media/write_picture.cpp)

set(lade_http_library lade-http)
set(lade_http_target lade::http)
set(lade_http_option LADE_HTTP)
set(lade_http_description "HTTP (libcurl, OpenSSL)")
set(lade_http_modules core)
set(lade_http_dependencies libcurl>=7.87 libcrypto libcurl)
set(lade_http_sources
  io/http/attempt.cpp
  io/http/body_stream.cpp
  io/http/byte_permits.cpp
  io/http/checksums.cpp
  io/http/client.cpp
  io/http/client_statistics.cpp
  io/http/connections.cpp
  io/http/credential_answers.cpp
  io/http/credential_cache.cpp
  io/http/credential_sources.cpp
  io/http/engine.cpp
  io/http/error.cpp
  io/http/escapes.cpp
  io/http/failures.cpp
  io/http/handles.cpp
  io/http/hops.cpp
  io/http/library.cpp
  io/http/multipart_upload.cpp
  io/http/origin.cpp
  io/http/parts.cpp
  io/http/profile_file.cpp
  io/http/proxies.cpp
  io/http/ranges.cpp
  io/http/resolver.cpp
  io/http/s3.cpp
  io/http/s3_credentials.cpp
  io/http/s3_listing.cpp
  io/http/s3_state.cpp
  io/http/s3_upload.cpp
  io/http/secrets.cpp
  io/http/settings.cpp
  io/http/sigv4.cpp
  io/http/transfer.cpp
  io/http/urls.cpp
  io/http/xml.cpp)

set(lade_formats_library lade-formats)
set(lade_formats_target lade::formats)
set(lade_formats_option LADE_FORMATS)
set(lade_formats_description "File formats of datasets (libdeflate, zlib, Zstandard)")
set(lade_formats_modules core)
set(lade_formats_dependencies zlib libzstd libdeflate)
set(lade_formats_sources
  io/formats/csv.cpp
  io/formats/decoder.cpp
  io/formats/decompress.cpp
  io/formats/example.cpp
  io/formats/from_shards.cpp
  io/formats/indexed_shards.cpp
  io/formats/inflate.cpp
  io/formats/json_lines.cpp
  io/formats/manifest.cpp
  io/formats/manifest_rows.cpp
  io/formats/mapped_file.cpp
  io/formats/mds.cpp
  io/formats/mds_column.cpp
  io/formats/mds_index.cpp
  io/formats/mds_sample.cpp
  io/formats/megatron_index.cpp
  io/formats/new_file.cpp
  io/formats/npy.cpp
  io/formats/npy_header.cpp
  io/formats/npz.cpp
  io/formats/protobuf_reader.cpp
  io/formats/query_digest.cpp
  io/formats/safetensors.cpp
  io/formats/safetensors_header.cpp
  io/formats/sample_name.cpp
  io/formats/save_manifest.cpp
  io/formats/shards.cpp
  io/formats/tar.cpp
  io/formats/tar_header.cpp
  io/formats/tar_index.cpp
  io/formats/tar_index_file.cpp
  io/formats/tar_samples.cpp
  io/formats/tar_walk.cpp
  io/formats/tar_writer.cpp
  io/formats/tfrecord.cpp
  io/formats/token_windows.cpp
  io/formats/tokens.cpp
  io/formats/wav.cpp
  io/formats/webdataset.cpp
  io/formats/zip.cpp
  io/formats/zip_directory.cpp)

set(lade_av_library lade-av)
set(lade_av_target lade::av)
set(lade_av_option LADE_AV)
set(lade_av_description "Video and audio (FFmpeg)")
set(lade_av_modules core media)
set(lade_av_dependencies libavformat>=59.27 libavcodec>=59.37 libswscale>=6.7 libswresample>=4.7 libavutil>=57.28)
set(lade_av_sources
  media/av/audio.cpp
  media/av/audio_converter.cpp
  media/av/audio_encoder.cpp
  media/av/audio_range.cpp
  media/av/audio_source.cpp
  media/av/av_messages.cpp
  media/av/av_options.cpp
  media/av/box_headers.cpp
  media/av/byte_input.cpp
  media/av/byte_output.cpp
  media/av/clip.cpp
  media/av/codec_pool.cpp
  media/av/container_codecs.cpp
  media/av/convert.cpp
  media/av/decoder.cpp
  media/av/decoding_times.cpp
  media/av/demuxer.cpp
  media/av/encoder_options.cpp
  media/av/encoder_quality.cpp
  media/av/ffmpeg.cpp
  media/av/format_reader.cpp
  media/av/format_writer.cpp
  media/av/frame.cpp
  media/av/frame_memory.cpp
  media/av/frame_options.cpp
  media/av/index_format.cpp
  media/av/kept_index.cpp
  media/av/lane_fft.cpp
  media/av/load_video.cpp
  media/av/log_mel.cpp
  media/av/mel_filters.cpp
  media/av/movie_tables.cpp
  media/av/muxer.cpp
  media/av/open_encoder.cpp
  media/av/output_io.cpp
  media/av/packet.cpp
  media/av/packet_filter.cpp
  media/av/packet_format.cpp
  media/av/packet_index.cpp
  media/av/packet_losses.cpp
  media/av/parameter_sets.cpp
  media/av/picture_converter.cpp
  media/av/picture_order.cpp
  media/av/picture_source.cpp
  media/av/rational.cpp
  media/av/resampler.cpp
  media/av/sample_converter.cpp
  media/av/sample_sink.cpp
  media/av/sample_source.cpp
  media/av/save_image.cpp
  media/av/shown_picture.cpp
  media/av/stated_colours.cpp
  media/av/stated_length.cpp
  media/av/stored_stream.cpp
  media/av/stored_values.cpp
  media/av/stream_info.cpp
  media/av/swr_pool.cpp
  media/av/video.cpp
  media/av/video_encoder.cpp
  media/av/video_format.cpp
  media/av/video_scan.cpp
  media/av/wav_source.cpp
  media/av/window_reader.cpp
  media/av/window_start.cpp)

set(lade_filters_library lade-filters)
set(lade_filters_target lade::filters)
set(lade_filters_option LADE_FILTERS)
set(lade_filters_description "Filter graphs of video and audio (FFmpeg)")
set(lade_filters_modules core media av)
set(lade_filters_dependencies libavfilter>=8.44 libavutil>=57.28)
set(lade_filters_sources media/filters/filter_check.cpp media/filters/filter_graph.cpp media/filters/filter_text.cpp)

set(lade_cuda_library lade-cuda)
set(lade_cuda_target lade::cuda)
set(lade_cuda_option LADE_CUDA)
set(lade_cuda_description "Streams and memory of GPUs (CUDA)")
set(lade_cuda_modules core)
set(lade_cuda_dependencies cudart)
set(lade_cuda_programs nvcc)
set(lade_cuda_sources
  cuda/aligned_addresses.cpp
  cuda/change_layout.cpp
  cuda/completion_watch.cpp
  cuda/convert.cu
  cuda/convert_queue.cpp
  cuda/copy.cu
  cuda/copy_bytes.cpp
  cuda/copy_plan.cpp
  cuda/decode_jpegs.cpp
  cuda/device.cpp
  cuda/device_batch.cpp
  cuda/device_block.cpp
  cuda/device_memory.cpp
  cuda/error.cpp
  cuda/event.cpp
  cuda/fixed_tensors.cpp
  cuda/gpu_work.cpp
  cuda/image_batch.cpp
  cuda/jpeg_batch_writer.cpp
  cuda/jpeg_decoder.cpp
  cuda/jpeg_header.cpp
  cuda/jpeg_pixels.cpp
  cuda/jpeg_session.cpp
  cuda/kernel_arguments.cpp
  cuda/kernel_launches.cpp
  cuda/label_copy.cpp
  cuda/layout.cu
  cuda/loaded_library.cpp
  cuda/managed_memory.cpp
  cuda/numa_policy.cpp
  cuda/nvjpeg_api.cpp
  cuda/nvtx.cpp
  cuda/pinned_memory.cpp
  cuda/resample.cu
  cuda/resample_queue.cpp
  cuda/runtime_api.cpp
  cuda/stream.cpp
  cuda/stream_users.cpp
  cuda/to_device.cpp
  cuda/to_host.cpp
  cuda/transfers.cpp
  cuda/write_images.cpp
  cuda/write_pictures.cpp)

set(lade_nvdec_library lade-nvdec)
set(lade_nvdec_target lade::nvdec)
set(lade_nvdec_option LADE_NVDEC)
set(lade_nvdec_description "Videos decoded by GPUs (CUDA, NVDEC, FFmpeg)")
set(lade_nvdec_modules core media av cuda)
set(lade_nvdec_dependencies ffnvcodec>=11.1)
set(lade_nvdec_sources
  cuda/nvdec/capabilities.cpp
  cuda/nvdec/clip_decoder.cpp
  cuda/nvdec/clip_writer.cpp
  cuda/nvdec/context.cpp
  cuda/nvdec/decode_clip.cpp
  cuda/nvdec/decode_clips.cpp
  cuda/nvdec/decoder_cache.cpp
  cuda/nvdec/elementary_stream.cpp
  cuda/nvdec/known_colours.cpp
  cuda/nvdec/nvcuvid_api.cpp
  cuda/nvdec/picture_colours.cpp
  cuda/nvdec/sessions.cpp
  cuda/nvdec/surface_decoder.cpp
  cuda/nvdec/surfaces.cpp)
