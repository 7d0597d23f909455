/// Photographs that are a part of the program, for those who have nothing else of Halcyon at hand.
public enum SamplePhotographs {
    /// A cat, 451×300 pixels: the JPEG file `chelsea.jpg`.
    public static var chelsea: [UInt8] { PackageResources.chelsea_jpg }
}
