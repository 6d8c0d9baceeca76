package import PromiseCore
package import PromiseIndex
package import PromiseProvider
package import PromiseSystem

/// Something that happened, or that somebody wants. All that the machine is ever told.
package enum Event {
    // The engine's life.

    /// `patience`: how long the provider has to answer a call that was made before the engine was there; nil:
    /// there is none.
    case started(isConnected: Bool, patience: Duration?)
    case stopping

    // What programs and people want.

    /// A folder's children are to be known; `isWhole`: all of them.
    case listingWanted(NodeID, isWhole: Bool, Waiter)
    /// A program begins to read a folder.
    case folderRead(NodeID)
    /// An item may have become another one, e.g. as a fetch found another version.
    case itemDoubted(NodeID)
    /// A folder that was made here is one that was removed here before and that the provider still
    /// has.
    case folderAdopted(ItemIdentifier)
    /// The content of these files is to come in the background.
    case fetchesWanted([NodeID])
    /// Files may have been pinned that are not here.
    case pinnedWanted
    /// A file whose content is on its way is pinned no longer; `dropsContent`: nothing of it is to be
    /// here.
    case unpinned(NodeID, dropsContent: Bool)
    /// Nodes that programs used, to be noted for eviction.
    case used([NodeID: Timestamp])
    /// The provider is to be looked at now, and told all that waits.
    case lookWanted(everything: Bool)
    /// Somebody waits for the provider to have everything, or does no more.
    case draining(Bool)
    /// A program waits for these, the content of these nodes included, and for none of before.
    case hurried([Pending.Subject], Set<NodeID>)
    case everythingDue
    /// One operation is to be carried out, and then nothing more by itself.
    case stepWanted(Waiter)
    /// The first of these that can is to begin.
    case step(Waiter, ArraySlice<Pending>)
    /// The first of these cannot be sent.
    case stepFailed(Waiter, ArraySlice<Pending>, Failure)
    /// Nothing is to be told, and fetched by itself, until that is taken back.
    case pauseWanted(Bool, Waiter)
    case limitsWanted(LimitsChange, Waiter)
    /// A change that was made here is given up. `kept`: the file whose content was kept before, as it
    /// was then.
    case revertWanted(Pending.Subject, kept: Node?, Waiter)
    /// Whoever was in the way of changes has let go.
    case claimsReleased

    // What the provider answered.

    case listed(ListedPart)
    case listingFailed(number: Int, ProviderError)
    /// `operationCount`: operations that had ended when it was asked.
    case found(ItemIdentifier, Result<FoundItem, ProviderError>, operationCount: Int)
    case lookedInto(ItemIdentifier, Result<[Item], ProviderError>, operationCount: Int)
    case surveyed(FolderSurvey, Result<[FolderSurvey.Found], ProviderError>, operationCount: Int)
    /// What is about to be sent has this digest.
    case digested(SentID, String)
    case told(Operation, Result<Operation.Outcome, ProviderError>)
    case rootAnswered(number: Int, Result<Item, ProviderError>)
    case anchorKnown(feed: Int, Anchor)
    case changesKnown(feed: Int, ChangePage)
    case feedFailed(feed: Int, ProviderError)
    /// Nil: it could not be told.
    case newsKnown(ChangePage?)

    // What happened to content.

    case fetchTroubled(NodeID, ProviderError)
    case fetchEnded(NodeID, Result<Void, Failure>)
    /// A fetch waits for its file's next reader.
    case hydrationPaused(NodeID)

    // Times that have come.

    case probeDue
    /// A call for the root has been silent for long.
    case rootSilent(number: Int)
    /// What other machines have moved out of the way has been there for long.
    case asideDue
    case probeLater
    /// The root is to be asked for again, as no answer is of use.
    case doubtDue
    /// Those who wait for the provider have heard nothing for seconds.
    case silenceNoticed
    case feedDue(feed: Int)
    /// The folders of what programs use are to be looked at.
    case usedDue(round: Int)

    // What is due by itself, one small step each.

    /// Room on the disk is to be looked for.
    case roomDue
    /// The differences after this number are to be followed.
    case followDue(after: Int64)
    case follow(ItemIdentifier)
    /// All of a part have been, up to this number.
    case followed(upTo: Int64)
    case listingDue(ItemIdentifier)
    /// A folder that was made here.
    case madeDue(ItemIdentifier)
    case askingDue
    case fetchingDue
    case tellingDue
    case tell(Pending)
    /// What was to be told cannot be.
    case tellingFailed(Pending, Failure)

    // What follows from another event.

    case listingComplete(number: Int, after: NameSpan?)
    case listingEnded(NodeID)
    case listingLost(number: Int, Failure)
    /// An operation that moves something has ended.
    case motionEnded
    /// Writes through open files are noted, and all pending work is to be due.
    case dueNow
    /// What programs used since a while ago, or watch.
    case usedKnown(WatchedNodes)
    /// Programs use what was not used lately; and what that is.
    case cameBack
    case cameBackTo(Set<NodeID>)
}

/// Names somebody who waits for a reply.
package struct Waiter: Hashable {
    var number: UInt64

    package init(number: UInt64) { self.number = number }
}
