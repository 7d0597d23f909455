import CVips

/// A call of any libvips operation. The operation is found by name, its arguments are set as properties, it is built,
/// and its results are read as properties. The names are those of libvips' reference ("vips_resize" is `resize`, with
/// `-` in names).
///
/// Confined, like ``Image``, to the job that created it.
public final class Operation {
    /// The input arguments by name.
    public typealias Arguments = [String: Value]

    private let name: String
    private let handle: UnsafeMutablePointer<VipsOperation>

    /// Builds the operation. Most operations are lazy, and compute pixels only when another call needs them.
    ///
    /// - Throws: ``VipsError`` with code `misuse` for an unknown name or a value of the wrong type, or `failed` if
    ///   libvips reports an error.
    public static func call(_ name: String, _ arguments: Arguments) throws(VipsError) -> Operation {
        let operation = try Operation(name)
        for (argument, value) in arguments { try operation.set(argument, value) }
        try operation.build(alone: !withoutVectorCode.contains(name))
        return operation
    }

    /// Operations that are slow to build and contain no vector code, and therefore need no lock.
    private static let withoutVectorCode: Set = ["icc_transform"]

    /// Returns the image output called `name`.
    public func image(_ name: String = "out") throws(VipsError) -> Image {
        try read(name, as: cvips_type_image()) { value in
            guard let object = g_value_dup_object(&value) else { return nil }
            return Image(owning: object.assumingMemoryBound(to: CVips.VipsImage.self))
        }
    }

    /// Returns a copy of the blob output called `name`.
    public func bytes(_ name: String = "buffer") throws(VipsError) -> [UInt8] {
        try read(name, as: cvips_type_blob()) { value in
            var length = 0
            guard let area = g_value_get_boxed(&value)?.assumingMemoryBound(to: VipsArea.self),
                let data = vips_area_get_data(area, &length, nil, nil, nil)
            else { return nil }
            return Array(UnsafeRawBufferPointer(start: data, count: length))
        }
    }

    /// Returns the floating-point output called `name`.
    public func double(_ name: String = "out") throws(VipsError) -> Double {
        try read(name, as: cvips_type_double()) { g_value_get_double(&$0) }
    }

    /// Returns the integer output called `name`.
    public func int(_ name: String) throws(VipsError) -> Int {
        try read(name, as: cvips_type_int()) { Int(g_value_get_int(&$0)) }
    }

    /// Returns the Boolean output called `name`.
    public func bool(_ name: String) throws(VipsError) -> Bool {
        try read(name, as: cvips_type_boolean()) { g_value_get_boolean(&$0) != 0 }
    }

    /// Returns the array output called `name`, such as `out-array` of `getpoint`.
    public func doubles(_ name: String) throws(VipsError) -> [Double] {
        try read(name, as: cvips_type_array_double()) { value in
            var count: Int32 = 0
            guard let numbers = vips_value_get_array_double(&value, &count) else { return nil }
            return Array(UnsafeBufferPointer(start: numbers, count: Int(count)))
        }
    }

    // MARK: Internals

    /// Loads a picture from retained bytes. Only this method may set the blob input, so that the bytes are sure to be
    /// retained.
    static func load(_ loader: String, _ bytes: RetainedBlob, _ arguments: Arguments) throws(VipsError) -> Image {
        let operation = try Operation(loader)
        let blob = bytes.blob()
        defer { vips_area_unref(blob) }
        try operation.set("buffer") { value, type in
            guard type == cvips_type_blob() else { return false }
            g_value_set_boxed(&value, blob)
            return true
        }
        for (argument, value) in arguments { try operation.set(argument, value) }
        try operation.build(alone: false)
        return try operation.image()
    }

    /// Saves a picture to memory. Building a saver encodes the picture.
    static func save(
        _ saver: String, _ image: Image, _ arguments: Arguments, keeping kept: MetadataPolicy
    ) throws(VipsError) -> [UInt8] {
        let operation = try Operation(saver)
        try operation.set("in", .image(image))
        // `keep` has flags since libvips 8.15. Older versions have only one switch for all metadata.
        if operation.takes("keep") {
            try operation.set("keep", .int(kept.rawValue))
        } else {
            try operation.set("strip", .bool(kept.isEmpty))
        }
        for (argument, value) in arguments { try operation.set(argument, value) }
        try operation.build(alone: false)
        return try operation.bytes()
    }

    private init(_ name: String) throws(VipsError) {
        VipsLibrary.start()
        guard let handle = vips_operation_new(name) else { throw .last(.misuse, in: name) }
        self.name = name
        self.handle = handle
    }

    deinit {
        SIMDSupport.alone {
            // Outputs hold separate references until they are released.
            vips_object_unref_outputs(object)
            g_object_unref(handle)
        }
    }

    private var object: UnsafeMutablePointer<VipsObject> {
        UnsafeMutableRawPointer(handle).assumingMemoryBound(to: VipsObject.self)
    }

    private func build(alone: Bool) throws(VipsError) {
        // Bypasses the operation cache, which is empty here but would still hash all arguments.
        let code = alone ? SIMDSupport.alone { vips_object_build(object) } : vips_object_build(object)
        guard code == 0 else { throw .last(in: name) }
    }

    private func set(_ argument: String, _ value: Value) throws(VipsError) {
        try set(argument) { target, type in value.write(to: &target, type: type) }
    }

    private func set(_ argument: String, _ write: (inout GValue, GType) -> Bool) throws(VipsError) {
        let type = try type(of: argument)
        var value = GValue()
        g_value_init(&value, type)
        defer { g_value_unset(&value) }
        guard write(&value, type) else {
            vips_error_clear()
            throw VipsError(.misuse, name, "argument \(argument) expects a value of another type")
        }
        g_object_set_property(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: GObject.self), argument, &value)
    }

    private func read<Result>(
        _ output: String, as type: GType, _ convert: (inout GValue) -> Result?
    ) throws(VipsError) -> Result {
        var value = GValue()
        g_value_init(&value, try self.type(of: output))
        defer { g_value_unset(&value) }
        g_object_get_property(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: GObject.self), output, &value)
        guard value.g_type == type, let result = convert(&value) else {
            throw VipsError(.misuse, name, "there is no output \(output) of this type")
        }
        return result
    }

    private func takes(_ argument: String) -> Bool {
        // An argument that the operation lacks has no type.
        (try? type(of: argument)) != nil
    }

    private func type(of argument: String) throws(VipsError) -> GType {
        var specification: UnsafeMutablePointer<GParamSpec>?
        var argumentClass: UnsafeMutablePointer<VipsArgumentClass>?
        var argumentInstance: UnsafeMutablePointer<VipsArgumentInstance>?
        guard
            vips_object_get_argument(object, argument, &specification, &argumentClass, &argumentInstance) == 0,
            let specification
        else { throw .last(.misuse, in: name) }
        return specification.pointee.value_type
    }
}

/// An argument of an ``Operation``.
public enum Value {
    /// A single image.
    case image(Image)
    /// A list of images.
    case images([Image])
    /// An integer, or the bits of a flags argument.
    case int(Int)
    /// A floating-point number.
    case double(Double)
    /// A Boolean.
    case bool(Bool)
    /// A string, the nickname of an enumeration value, such as `lanczos3`, or of an interpolator, such as `bicubic`.
    case string(String)
    /// A list of numbers, such as a color.
    case doubles([Double])

    /// Stores the value in `target`, which is initialized for the argument's type. Returns false if the types do not
    /// match.
    func write(to target: inout GValue, type: GType) -> Bool {
        switch (self, g_type_fundamental(type)) {
        case (.image(let image), cvips_type_object()) where type == cvips_type_image():
            g_value_set_object(&target, image.handle)
        case (.int(let number), cvips_type_int()):
            g_value_set_int(&target, Int32(clamping: number))
        case (.int(let bits), cvips_type_flags()):
            g_value_set_flags(&target, UInt32(truncatingIfNeeded: bits))
        case (.int(let number), cvips_type_double()):
            g_value_set_double(&target, Double(number))
        case (.double(let number), cvips_type_double()):
            g_value_set_double(&target, number)
        case (.bool(let on), cvips_type_boolean()):
            g_value_set_boolean(&target, on ? 1 : 0)
        case (.string(let text), cvips_type_string()):
            g_value_set_string(&target, text)
        case (.string(let name), cvips_type_enum()):
            let number = vips_enum_from_nick("halcyon", type, name)
            guard number >= 0 else { return false }
            g_value_set_enum(&target, number)
        case (.string(let name), cvips_type_object()) where type == vips_interpolate_get_type():
            guard let interpolator = vips_interpolate_new(name) else { return false }
            g_value_take_object(&target, interpolator)
        case (.doubles(let numbers), _) where type == cvips_type_array_double():
            vips_value_set_array_double(&target, numbers, Int32(numbers.count))
        case (.doubles(let numbers), _) where type == cvips_type_array_int():
            let whole = numbers.compactMap { Int32(exactly: $0) }
            guard whole.count == numbers.count else { return false }
            vips_value_set_array_int(&target, whole, Int32(whole.count))
        case (.images(let images), _) where type == cvips_type_array_image():
            vips_value_set_array_image(&target, Int32(images.count))
            let places = vips_value_get_array_image(&target, nil)
            for (index, image) in images.enumerated() {
                g_object_ref(image.handle)
                places?[index] = image.handle
            }
        default:
            return false
        }
        return true
    }
}

extension Value: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByStringLiteral, ExpressibleByArrayLiteral
{
    /// Creates an integer value.
    public init(integerLiteral value: Int) { self = .int(value) }
    /// Creates a floating-point value.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// Creates a Boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a string or the nickname of an enumeration value.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates a list of numbers.
    public init(arrayLiteral elements: Double...) { self = .doubles(elements) }
}
