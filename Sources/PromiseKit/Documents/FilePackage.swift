/// The files of a folder that is one document.
public struct FilePackage: Sendable, Equatable {
    /// By their paths within the folder: bytes, with a slash between names, and none at the beginning.
    public var files: [[UInt8]: [UInt8]]

    public init(_ files: [[UInt8]: [UInt8]] = [:]) { self.files = files }

    public subscript(path: String) -> [UInt8]? {
        get { files[Array(path.utf8)] }
        set { files[Array(path.utf8)] = newValue }
    }

    public var byteCount: Int { files.values.reduce(0) { $0 + $1.count } }
}

/// Contents of a document that is a folder with files in it, and one unit for whoever uses it: a new version of it takes the
/// place of the old one in one step. Symbolic links in it stay as they are.
public protocol PackageContents: DocumentContents {
    init(package: FilePackage) throws
    func package() throws -> FilePackage
}

extension PackageContents {
    public init(bytes: [UInt8]) throws {
        throw PromiseError(.local, "a document that is a folder was read as a file", exitStatus: 1)
    }

    public func bytes() throws -> [UInt8] {
        throw PromiseError(.local, "a document that is a folder was to be written as a file", exitStatus: 1)
    }
}

/// What a document is on the disk.
enum DocumentData: Sendable {
    case file([UInt8])
    case package(FilePackage)
}

extension DocumentContents {
    static var isPackage: Bool { Self.self is any PackageContents.Type }

    init(data: DocumentData) throws {
        switch data {
        case .file(let bytes): self = try Self(bytes: bytes)
        case .package(let package):
            let type = Self.self as? any PackageContents.Type
            guard let contents = try type?.init(package: package) as? Self else {
                throw PromiseError(.local, "a document that is a file was read as a folder", exitStatus: 1)
            }
            self = contents
        }
    }

    func data() throws -> DocumentData {
        if let package = self as? any PackageContents { return .package(try package.package()) }
        return .file(try bytes())
    }
}
