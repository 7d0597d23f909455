/// Photographs that are a part of the program, for those who have nothing else of Halcyon at hand.
public enum SamplePhotographs {
    /// A cat, 451×300 pixels: the JPEG file `chelsea.jpg`.
    public static var chelsea: [UInt8] { PackageResources.chelsea_jpg }

    /// The JPEG files by name: a portrait, a cat and a cup of coffee.
    public static var all: [String: [UInt8]] {
        [
            "astronaut.jpg": PackageResources.astronaut_jpg, "chelsea.jpg": chelsea,
            "coffee.jpg": PackageResources.coffee_jpg,
        ]
    }
}
