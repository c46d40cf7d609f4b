// The compiled part of lade-cuda. To use it without building a library, include
// this in exactly one .cpp file of the program, beside:
//   lade/implementation.hpp
// and lade/cuda/implementation.cuh in exactly one .cu file.
// Written by `./dev modules` from modules.ini.

#pragma once

#include "../../../cuda/change_layout.cpp"
#include "../../../cuda/completion_watch.cpp"
#include "../../../cuda/convert_queue.cpp"
#include "../../../cuda/copy_bytes.cpp"
#include "../../../cuda/copy_plan.cpp"
#include "../../../cuda/decode_jpegs.cpp"
#include "../../../cuda/device.cpp"
#include "../../../cuda/device_batch.cpp"
#include "../../../cuda/error.cpp"
#include "../../../cuda/event.cpp"
#include "../../../cuda/fixed_tensors.cpp"
#include "../../../cuda/image_batch.cpp"
#include "../../../cuda/jpeg_batch_writer.cpp"
#include "../../../cuda/jpeg_decoder.cpp"
#include "../../../cuda/jpeg_header.cpp"
#include "../../../cuda/jpeg_pixels.cpp"
#include "../../../cuda/jpeg_session.cpp"
#include "../../../cuda/kernel_arguments.cpp"
#include "../../../cuda/kernel_launches.cpp"
#include "../../../cuda/label_copy.cpp"
#include "../../../cuda/loaded_library.cpp"
#include "../../../cuda/memory.cpp"
#include "../../../cuda/numa_policy.cpp"
#include "../../../cuda/nvjpeg_api.cpp"
#include "../../../cuda/nvtx.cpp"
#include "../../../cuda/resample_queue.cpp"
#include "../../../cuda/runtime_api.cpp"
#include "../../../cuda/stream.cpp"
#include "../../../cuda/stream_users.cpp"
#include "../../../cuda/to_device.cpp"
#include "../../../cuda/to_host.cpp"
#include "../../../cuda/transfers.cpp"
#include "../../../cuda/write_images.cpp"
#include "../../../cuda/write_pictures.cpp"
