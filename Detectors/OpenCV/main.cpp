// halcyon-detector: finds faces with CenterFace on OpenCV's DNN module, for Halcyon's setting images.detector.
//
// The protocol on standard input, a Unix stream socket in both directions, is described in docs/detectors.md.
// Usage: halcyon-detector MODEL
// Exit codes: 0 the other end was closed, 1 the model or a message is unusable, 2 wrong usage.

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <opencv2/dnn.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The name in result keys. Change it with the model, or with anything that changes the boxes.
const char greeting[] = R"({"protocol":1,"detector":"opencv-centerface/1","kinds":["faces"]})";

const float leastConfidence = 0.3f;    // of boxes that are reported
const float greatestOverlap = 0.3f;    // of two boxes (intersection over union) that are both reported
const size_t mostBoxes = 256;          // Halcyon accepts no more
const uint32_t longestHeader = 4096;   // bytes
const int longestSide = 4096;          // pixels
const int stride = 4;                  // input pixels per cell of the outputs
const int block = 32;                  // the sides of the input are multiples of it

struct Box {
    cv::Rect2f place;
    float confidence;
};

class CenterFace {
  public:
    explicit CenterFace(const std::string &path) : model(path), net(cv::dnn::readNet(path)) {
        names = {"537", "538", "539"};  // heat map, logarithm of the size, offset of the center
    }

    // Finds faces in an RGB picture of 8-bit samples. The boxes are in its pixels, the most confident first.
    std::vector<Box> find(const cv::Mat &rgb) {
        // The picture is extended to whole blocks, not stretched.
        cv::Mat padded;
        cv::copyMakeBorder(rgb, padded, 0, (block - rgb.rows % block) % block, 0, (block - rgb.cols % block) % block,
                           cv::BORDER_CONSTANT);
        // A network that has seen one size computes nonsense for others (OpenCV 4.6).
        if (padded.size() != last) {
            if (!last.empty()) net = cv::dnn::readNet(model);
            last = padded.size();
        }
        net.setInput(cv::dnn::blobFromImage(padded));
        std::vector<cv::Mat> outputs;
        net.forward(outputs, names);
        const cv::Mat &heat = outputs[0], &size = outputs[1], &offset = outputs[2];
        const int rows = heat.size[2], columns = heat.size[3];
        auto at = [columns, rows](const cv::Mat &map, int channel, int row, int column) {
            return map.ptr<float>()[(channel * rows + row) * columns + column];
        };
        std::vector<Box> found;
        for (int row = 0; row < rows; row++) {
            for (int column = 0; column < columns; column++) {
                const float confidence = at(heat, 0, row, column);
                if (!(confidence >= leastConfidence)) continue;
                const float height = expf(at(size, 0, row, column)) * stride;
                const float width = expf(at(size, 1, row, column)) * stride;
                const float y = (row + at(offset, 0, row, column) + 0.5f) * stride;
                const float x = (column + at(offset, 1, row, column) + 0.5f) * stride;
                cv::Rect2f place(x - width / 2, y - height / 2, width, height);
                place &= cv::Rect2f(0, 0, rgb.cols, rgb.rows);
                if (place.width > 0 && place.height > 0) found.push_back({place, std::min(confidence, 1.0f)});
            }
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const Box &left, const Box &right) { return left.confidence > right.confidence; });
        std::vector<Box> kept;
        for (const Box &box : found) {
            auto overlaps = [&box](const Box &other) {
                const float both = (box.place & other.place).area();
                return both > greatestOverlap * (box.place.area() + other.place.area() - both);
            };
            if (kept.size() < mostBoxes && std::none_of(kept.begin(), kept.end(), overlaps)) kept.push_back(box);
        }
        return kept;
    }

  private:
    const std::string model;
    cv::dnn::Net net;
    std::vector<cv::String> names;
    cv::Size last;  // of the input
};

std::string json(const std::vector<Box> &boxes) {
    std::string text = "{\"boxes\":[";
    char part[200];
    for (const Box &box : boxes) {
        snprintf(part, sizeof part,
                 "%s{\"label\":\"face\",\"confidence\":%.4f,\"x\":%.2f,\"y\":%.2f,\"width\":%.2f,\"height\":%.2f}",
                 text.back() == '[' ? "" : ",", box.confidence, box.place.x, box.place.y, box.place.width,
                 box.place.height);
        text += part;
    }
    return text + "]}";
}

// Reads exactly this number of bytes; false at the end of the stream before the first of them.
bool receive(void *bytes, size_t count) {
    size_t done = 0;
    while (done < count) {
        const ssize_t part = read(STDIN_FILENO, static_cast<char *>(bytes) + done, count - done);
        if (part > 0) {
            done += part;
        } else if (part == 0 && done == 0) {
            return false;
        } else if (part == 0 || errno != EINTR) {
            throw std::runtime_error("the message ends early");
        }
    }
    return true;
}

void reply(const std::string &header) {
    // Standard input is a socket in both directions.
    const uint32_t counts[] = {static_cast<uint32_t>(header.size()), 0};
    std::string message(reinterpret_cast<const char *>(counts), sizeof counts);
    message += header;
    for (size_t done = 0; done < message.size();) {
        const ssize_t part = send(STDIN_FILENO, message.data() + done, message.size() - done, MSG_NOSIGNAL);
        if (part >= 0) {
            done += part;
        } else if (errno != EINTR) {
            throw std::runtime_error("cannot reply");
        }
    }
}

// The value of a whole number in a header that Halcyon wrote: compact JSON.
int number(const std::string &header, const std::string &name) {
    const size_t place = header.find("\"" + name + "\":");
    if (place == std::string::npos) throw std::runtime_error("a request has no " + name);
    return atoi(header.c_str() + place + name.size() + 3);
}

int serve(CenterFace &detector) {
    reply(greeting);
    uint32_t counts[2];
    while (receive(counts, sizeof counts)) {
        uint64_t length = 0;
        if (counts[0] > longestHeader || counts[1] != 1 || !receive(&length, sizeof length)) {
            throw std::runtime_error("a request has an unexpected form");
        }
        std::string header(counts[0], ' ');
        receive(&header[0], header.size());
        const int width = number(header, "width"), height = number(header, "height");
        if (width < 1 || height < 1 || width > longestSide || height > longestSide ||
            length != uint64_t(3) * width * height) {
            throw std::runtime_error("a request has an unexpected size");
        }
        std::vector<uint8_t> pixels(length);
        receive(pixels.data(), pixels.size());
        if (header.find("\"detect\":\"faces\"") == std::string::npos) {
            reply("{\"error\":\"this detector finds only faces\"}");
            continue;
        }
        reply(json(detector.find(cv::Mat(height, width, CV_8UC3, pixels.data()))));
    }
    return 0;
}

}  // namespace

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: halcyon-detector MODEL\n");
        return 2;
    }
    try {
        // Workers run several detectors at once. One thread each keeps their cost predictable.
        cv::setNumThreads(1);
        CenterFace detector(arguments[1]);
        return serve(detector);
    } catch (const std::exception &error) {
        fprintf(stderr, "halcyon-detector: %s\n", error.what());
        return 1;
    }
}
