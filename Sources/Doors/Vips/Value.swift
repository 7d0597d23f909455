import CVips

/// An argument of an ``Operation``.
public enum Value {
    /// A picture.
    case image(Image)
    /// Pictures, where the operation takes a list.
    case images([Image])
    /// A whole number, or the bits of a flags argument.
    case int(Int)
    /// A number.
    case double(Double)
    /// A switch.
    case bool(Bool)
    /// A text, the short name of an enumeration's value, such as `lanczos3`, or an interpolator's, such as `bicubic`.
    case string(String)
    /// A list of numbers, such as a colour.
    case doubles([Double])

    /// Puts the value into `target`, which has been made for the argument's type. False when the kinds do not fit.
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
    /// A whole number.
    public init(integerLiteral value: Int) { self = .int(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// A switch.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A text or the short name of an enumeration's value.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A list of numbers.
    public init(arrayLiteral elements: Double...) { self = .doubles(elements) }
}
